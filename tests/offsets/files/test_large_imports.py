"""Files of offsets that do not fit into memory: decided, written and taken back part by part."""

from __future__ import annotations

import io
import resource
from pathlib import Path

import pytest

from eosctl.app import App
from eosctl.core.kept import record_lines
from eosctl.core.records import Record, record_line
from eosctl.engine import files as grouped
from eosctl.errors import EosctlError
from eosctl.offsets.apply import apply_plan
from eosctl.offsets.files.importing import ImportRequest, plan_offsets_import, read_offsets_file
from eosctl.offsets.files.offsets_file import OffsetsFile
from eosctl.offsets.files.restore import RestoreRequest, plan_restore
from eosctl.offsets.writes import OffsetWritePlan
from eosctl.report import Report
from tests.fakes.faults import Call
from tests.fakes.offset_topics import GLOBAL, OffsetWorld, merge_world

KEYS = 60


@pytest.fixture
def world() -> OffsetWorld:
    return merge_world()


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with two records for each key: it is read and decided a few at a time."""
    monkeypatch.setattr(grouped, "PART_RECORDS", 25)
    monkeypatch.setattr(record_lines, "LINES_AT_ONCE", 7)
    path = tmp_path / "offsets.ndjson"
    records = [Record("t", 0, number, 10, key(number % KEYS), b"%d" % number, ()) for number in range(2 * KEYS)]
    path.write_text("".join(f"{record_line(each)}\n" for each in records))
    return path


def key(number: int) -> bytes:
    return b'["c",{"f":"%d"}]' % number


def read(app: App, path: Path) -> OffsetsFile:
    return read_offsets_file(app, str(path), stdin=io.BytesIO())


def apply(app: App, plan: OffsetWritePlan) -> Report:
    return apply_plan(app, plan, lambda: plan)


def test_all_of_it_is_written_once_and_can_be_taken_back(app: App, world: OffsetWorld, path: Path) -> None:
    for number in range(0, KEYS, 2):
        world.topics.put(GLOBAL, key(number), b"old")
    before = world.topics.newest(GLOBAL)
    plan = plan_offsets_import(app, ImportRequest(read(app, path), store=GLOBAL))
    parts = [set(part["partition"].to_pylist()) for part in plan.writes.tables()]
    assert parts == [{0}, {1}, {2}, {3}, {4}], "a part has whole partitions, so that it is read back by itself"
    assert [problem.message for problem in plan.problems][3] == (
        "60 records are not written in all, as newer ones fall on the same keys"
    )
    done = apply(app, plan)
    assert (int(done.exit_code), done.summary.written) == (0, KEYS)
    wanted = {key(number): b"%d" % (number + KEYS) for number in range(KEYS)}
    assert {each: value for each, value in world.topics.newest(GLOBAL).items() if each in wanted} == wanted
    apply(app, plan_restore(app, RestoreRequest(str(done.data.backup))))
    assert world.topics.newest(GLOBAL) == dict.fromkeys(wanted) | before
    assert list((app.state_dir / "parts").iterdir()) == []


@pytest.mark.parametrize("planned", [False, True])
def test_a_disk_that_is_full_is_an_error_before_anything_is_written(
    app: App, world: OffsetWorld, path: Path, planned: bool
) -> None:
    """While the file is read, or while its keys are decided."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill_up(_call: Call) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))

    writes = world.topics.writes
    if planned:
        world.topics.before("read", fill_up)
    else:
        fill_up(Call("", ()))
    try:
        with pytest.raises(EosctlError, match=f"cannot write {app.state_dir / 'parts'}: ") as caught:
            plan_offsets_import(app, ImportRequest(read(app, path), store=GLOBAL))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (caught.value.exit_code, world.topics.writes) == (1, writes)
    assert "Nothing was written" in str(caught.value.hint)
