"""`restore` and `verify` ask what became of a key, not of a partition: what lies on others counts as well."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eosctl.app import App
from eosctl.core.offsets.names import partition_for
from eosctl.core.offsets.views import Prefer
from eosctl.core.records import OutRecord
from eosctl.engine import files as grouped
from eosctl.errors import EosctlError, RefusedError
from eosctl.migrate.run import verify_backup
from eosctl.offsets.apply import apply_plan
from eosctl.offsets.files.importing import ImportRequest, plan_offsets_import
from eosctl.offsets.files.offsets_file import parse_offsets_file
from eosctl.offsets.files.restore import RestoreRequest, plan_restore
from eosctl.offsets.writes import MergeRequest, OffsetWritePlan, plan_offsets_merge
from eosctl.report import Report
from tests.core.offsets.stores import NO_SPOOL
from tests.fakes.offset_topics import GLOBAL, OWN, A, OffsetWorld, merge_world
from tests.fakes.partitions import FakePartition
from tests.reports import codes

HOME = partition_for(A, 5)
AWAY = (HOME + 1) % 5
MORE = next(size for size in range(6, 50) if partition_for(A, size) != HOME)
KEYS = [b'["c",{"f":"%d"}]' % number for number in range(40)]


@pytest.fixture
def world() -> OffsetWorld:
    return merge_world()


@pytest.fixture(params=[1, 1_000_000], ids=["in parts", "in memory"])
def parts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each partition is a part, or all are one."""
    monkeypatch.setattr(grouped, "PART_RECORDS", request.param)


def merge(app: App) -> str:
    """Puts what is global into the connector's topic; returns the backup."""
    request = MergeRequest(("c",), into="dedicated", prefer=Prefer.GLOBAL)
    report = apply_plan(app, plan_offsets_merge(app, request), lambda: plan_offsets_merge(app, request))
    assert report.exit_code == 0
    return str(report.data.backup)


def verified(app: App, backup: str, *, before: bool = False) -> tuple[int, list[tuple[str, str, int | None]]]:
    report = verify_backup(app, Path(backup), before=before)
    return int(report.exit_code), [(row.key, row.status, row.target.partition) for row in report.rows]


def restoring(app: App, backup: str, *, overwrite_newer: bool = False) -> OffsetWritePlan:
    return plan_restore(app, RestoreRequest(backup, overwrite_newer=overwrite_newer))


def restore(app: App, backup: str, *, overwrite_newer: bool = False) -> Report:
    plan = restoring(app, backup, overwrite_newer=overwrite_newer)
    return apply_plan(app, plan, lambda: restoring(app, backup, overwrite_newer=overwrite_newer))


def newest(world: OffsetWorld, key: bytes) -> bytes | None:
    records = [each for each in world.topics.read(OWN, newest_per_key=True).records if each.key == key]
    return max(records, key=lambda each: (each.timestamp_ms, each.offset)).value


@pytest.mark.usefixtures("parts")
def test_what_the_connector_wrote_at_home_is_seen(app: App, world: OffsetWorld) -> None:
    """A merge keeps a key where its topic has it. The offset that the connector committed since, where Connect's
    producer puts it, was not seen: `verify` said that all is as written, and `restore` went over it, unasked."""
    world.topics.put(OWN, A, b"0", partition=AWAY)
    backup = merge(app)
    assert verified(app, backup) == (0, [])
    assert codes(verify_backup(app, Path(backup))) == ["wrong_partition"]
    world.time.pass_until(world.time.now_s + 60)
    world.topics.put(OWN, A, b"777")
    assert verified(app, backup) == (3, [(A.decode(), "differs", HOME)])
    plan = restoring(app, backup)
    [write] = [each for each in plan.writes if each.key.raw == A]
    assert (write.conflict, write.action, write.reason, write.partition) == (True, "conflict", "written_since", AWAY)
    assert (write.before and write.before.value, write.replaces and write.replaces.value) == (b"777", b"1")
    with pytest.raises(RefusedError):
        restore(app, backup)
    assert newest(world, A) == b"777"
    world.time.pass_until(world.time.now_s + 60)
    assert restore(app, backup, overwrite_newer=True).exit_code == 0
    assert newest(world, A) == b"0"
    assert verified(app, backup, before=True) == (0, [])
    world.time.pass_until(world.time.now_s + 60)
    world.topics.put(OWN, A, b"778")
    assert verified(app, backup, before=True) == (3, [(A.decode(), "differs", HOME)])


@pytest.mark.usefixtures("parts")
def test_older_copies_elsewhere_are_none_of_its_business(app: App, world: OffsetWorld) -> None:
    now_ms = world.clock().now_ms()
    copies = ((AWAY, b"-5", 2_000), (HOME, b"0", 1_000))
    world.topics.write([OutRecord(OWN, A, value, at, now_ms - ago) for at, value, ago in copies])
    backup = merge(app)
    assert verified(app, backup) == (0, [])
    assert not restoring(app, backup).writes.conflicts
    world.time.pass_until(world.time.now_s + 60)
    world.topics.put(OWN, A, b"1", partition=AWAY)
    assert verified(app, backup) == (0, []), "it is what was written"
    assert not restoring(app, backup).writes.conflicts


@pytest.mark.usefixtures("parts")
def test_after_a_write_that_came_to_nothing_there_is_nothing_to_take_back(app: App, world: OffsetWorld) -> None:
    """Nothing lies where it would have written; what lies elsewhere was there before."""
    world.topics.put(OWN, A, b"7", partition=AWAY)
    line = json.dumps({"topic": OWN, "partition": HOME, "key": A.decode(), "value": "1"}).encode()
    plan = plan_offsets_import(app, ImportRequest(parse_offsets_file(iter([line]), NO_SPOOL, name="f"), OWN))
    world.topics.fail_next("record", EosctlError("the broker went away"))
    report = apply_plan(app, plan, lambda: plan)
    backup = str(report.data.backup)
    assert [(write.action, write.conflict) for write in restoring(app, backup).writes] == [("keep", False)]
    assert (verified(app, backup)[0], verified(app, backup, before=True)[0]) == (3, 0)


@pytest.mark.usefixtures("parts")
def test_partitions_that_were_added_are_named_and_looked_at(app: App, world: OffsetWorld) -> None:
    backup = merge(app)
    log = world.topics.named(OWN)
    log.partitions[:] = [*log.partitions, *(FakePartition() for _ in range(MORE - 5))]
    report = verify_backup(app, Path(backup))
    assert (int(report.exit_code), codes(report)) == (0, ["wrong_partition"])
    assert "wrong_partition" in [each.code for each in restoring(app, backup).problems]
    world.time.pass_until(world.time.now_s + 60)
    world.topics.put(OWN, A, b"777")
    assert verified(app, backup) == (3, [(A.decode(), "differs", partition_for(A, MORE))])
    assert restoring(app, backup).writes.conflicts == 1


def test_partitions_that_are_gone_refuse_the_plan(app: App, world: OffsetWorld) -> None:
    """It was found at the write."""
    backup = merge(app)
    log = world.topics.named(OWN)
    log.partitions[:] = log.partitions[:1]
    with pytest.raises(RefusedError, match="which has 1 partition now"):
        restoring(app, backup)
    assert verified(app, backup)[0] == 3


@pytest.mark.usefixtures("parts")
def test_what_an_open_transaction_hides_on_another_partition_is_not_claimed(app: App, world: OffsetWorld) -> None:
    backup = merge(app)
    world.topics.open_transaction(OWN, AWAY)
    world.topics.put(OWN, A, b"777", partition=AWAY)
    assert verified(app, backup)[1] == [(A.decode(), "hidden", HOME)]
    with pytest.raises(RefusedError, match="an open transaction hides"):
        restoring(app, backup)


@pytest.mark.usefixtures("parts")
def test_each_key_of_many_is_found_wherever_it_was_written(app: App, world: OffsetWorld) -> None:
    for key in KEYS:
        world.topics.put(GLOBAL, key, b"g")
    for key in KEYS[::3]:
        world.topics.put(OWN, key, b"o", partition=(partition_for(key, 5) + 1) % 5)
    backup = merge(app)
    assert verified(app, backup) == (0, [])
    world.time.pass_until(world.time.now_s + 60)
    since = {key: (partition_for(key, 5) + number) % 5 for number, key in enumerate(KEYS[5:15])}
    for key, partition in since.items():
        world.topics.put(OWN, key, b"since", partition=partition)
    found = {key.encode(): where for key, _how, where in verified(app, backup)[1]}
    assert found == since
    assert {write.key.raw for write in restoring(app, backup).writes if write.conflict} == set(since)
