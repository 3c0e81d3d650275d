"""What the audit log keeps of a write of offsets with more keys than are shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from eosctl.core.records import Record
from eosctl.offsets.apply import apply_plan
from eosctl.offsets.lint.past_writes import offsets_set_on_purpose
from eosctl.offsets.rows import MOST_ROWS
from eosctl.offsets.writes import MergeRequest, plan_offsets_merge, show_plan
from eosctl.state.audit import AuditedCommand, AuditLog
from eosctl.state.audit_file import read_entries
from tests.fakes.migration import SOURCE, Scene, connector
from tests.fakes.offset_topics import GLOBAL, OffsetWorld


@pytest.mark.parametrize("each", [MOST_ROWS // 3, MOST_ROWS], ids=["all are shown", "some are shown"])
def test_all_that_a_merge_touched_is_named(tmp_path: Path, each: int) -> None:
    """The hundred that are shown stood for all: doctor took what was set on purpose for an offset that went back."""
    world = OffsetWorld(group_id="g")
    world.topics.add_topic(GLOBAL, 5)
    for name in "abc":
        world.topics.add_topic(f"own-{name}", 5)
        world.connect.add(name, {"offsets.storage.topic": f"own-{name}"}, state="STOPPED")
        for number in range(each):
            world.topics.put(GLOBAL, b'["%s",{"f":"%d"}]' % (name.encode(), number), b'{"n":1}')
    app, request = world.app(tmp_path), MergeRequest((), into="dedicated")
    plan = plan_offsets_merge(app, request)
    log = AuditLog(tmp_path / "audit.jsonl", tmp_path / "pending", app.clock)
    action = AuditedCommand("offsets merge", {"all": True}, (), app.target)
    report = log.record(action, show_plan(app, plan), lambda: apply_plan(app, plan, lambda: plan))
    assert report.exit_code == 0
    [entry] = read_entries(log.path).entries
    assert entry["touched"] == {"connectors": ["a", "b", "c"], "topics": ["own-a", "own-b", "own-c"]}
    digests = [entry["before_digest"], entry["after_digest"]]
    assert [digest is None for digest in digests] == [3 * each > MOST_ROWS] * 2, "of a part they say nothing"
    meant = offsets_set_on_purpose(app, str(entry["target"]["kafka_cluster_id"]))
    record = Record("own", 0, 0, app.clock.now_ms(), b"", b"")
    assert [meant(name, record) for name in "abcd"] == [True, True, True, False]


def test_all_that_a_migration_touched_is_named(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    for name in "bcd":
        keys = [b'["%s",{"f":"%d"}]' % (name.encode(), number) for number in range(MOST_ROWS)]
        scene.put(SOURCE, dict.fromkeys(keys, b"{}"))
    scene.place({name: connector("STOPPED") for name in "bcd"})
    prepared = scene.prepared(renames={"d": "e"})
    plan = prepared.report()
    assert prepared.apply is not None
    wanted = {"connectors": ["b", "c", "e"], "topics": [f"offsets-{name}" for name in "bce"]}
    assert (plan.touches, prepared.apply().touches) == (wanted, wanted)
