"""What the stages of a migration do: one suite, on the fakes and on Spark over a real broker.

Every stage is asked for what it must find in topics whose records are known one by one.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.offsets.migration import ConnectorRoute, MigrationPlan, Mismatch, Parts, PlannedTopic
from eosctl.core.offsets.names import partition_for
from eosctl.core.offsets.views import Policy
from eosctl.core.records import Record, read_records, record_line
from eosctl.engine.backups.file import backup_lines
from eosctl.migrate.plan import MigrationStages
from tests.contract.clusters import FakeSubject, Subject
from tests.contract.migration_stage import AWAY, PARTITIONS, Shuffled, Stage, T, key
from tests.fakes.stages import FakeStages
from tests.fakes.topics import FakeTopicStore
from tests.sandbox_fixtures import PATIENCE_S

PARTS: Parts = ((0, 2), (1,))
RENAMES = {"b": "z"}
SPARK = pytest.param("stack", marks=[pytest.mark.live, pytest.mark.spark, pytest.mark.on("stack", "spark")])
pytestmark = pytest.mark.parametrize("subject", ["memory", SPARK], indirect=True, scope="module")


@pytest.fixture(scope="module")
def stage(request: pytest.FixtureRequest, subject: Subject) -> Iterator[Stage]:
    with subject.store(timeout_s=300) as store:
        if isinstance(subject, FakeSubject):
            yield Stage(subject, FakeStages(FakeTopicStore(subject.state)), store)
            return
        from eosctl.migrate.spark.job import MigrationJob

        context = request.getfixturevalue("spark").sparkContext
        servers = request.getfixturevalue("stack").bootstrap_servers
        client = ClientSettings((servers,), request_timeout_ms=1000 * PATIENCE_S)
        yield Stage(subject, MigrationJob(context, client), store)


@pytest.fixture(scope="module")
def shuffled(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Shuffled:
    """Written and read once; what each policy decides lands in the same folder."""
    folder = tmp_path_factory.mktemp("shuffled")
    name = f"contract-{uuid.uuid4().hex[:10]}"
    first, second, to_a, to_z = (f"{name}-{each}" for each in ("first", "second", "to-a", "to-z"))
    stage.create(first, second, to_a, to_z)
    stage.put(second, (key("a", "missing"), b"old", 1), (key("a", "missing"), b"new", 2), (key("a", "equal"), b"1", 1))
    stage.put(second, (key("a", "earlier"), b"s", 1), (key("a", "later"), b"s", 9), (key("a", "gone"), None, 9))
    stage.put(second, (key("a", "null"), b" null ", 1), (key("a", "both"), b"weak", 9), (key("c", 1), b"c", 1))
    stage.put(second, (key("b", 1), b"from b", 1), (key("z", 1), b"from z", 5), (key("b", 2), b"b2", 1))
    stage.put(second, (b"not a key", b"x", 1))
    home = partition_for(key("a", "twice"), PARTITIONS)
    stage.put(second, (key("a", "twice"), b"newer", 7), partition=(home + 1) % PARTITIONS)
    stage.put(second, (key("a", "twice"), b"older", 3))
    stage.put(first, (key("a", "both"), b"strong", 1))
    stage.put(to_a, (key("a", "equal"), b"1", 5), (key("a", "earlier"), b"t", 5), (key("a", "later"), b"t", 5))
    stage.put(to_a, (key("a", "kept"), b"k", 1))
    stage.put(to_a, (key("a", "gone"), b"t", 5), partition=AWAY)
    for end, value in (("abort", b"aborted"), ("commit", b"in a transaction")):
        producer = stage.subject.producer(f"{name}-{end}")
        producer.send(second, 0, key("a", "transaction"), value)
        getattr(producer, end)()
    sources, targets = stage.planned(first, second), stage.planned(to_a, to_z)
    routes = (ConnectorRoute("a", "a", to_a), ConnectorRoute("b", "z", to_z), ConnectorRoute("z", "z", to_z))
    read = stage.stages.snapshot(sources, folder / "source", parts=PARTS, renames=RENAMES)
    assert (set(read.connectors), read.in_place, read.records) == ({"a", "b", "c", "z"}, False, 17)
    there = stage.stages.snapshot(targets, folder / "target", parts=PARTS)
    assert there.connectors == {"a"}
    return Shuffled(folder, sources, targets, routes)


ALWAYS = {
    "a both": ("write", "missing"), "a missing": ("write", "missing"), "a transaction": ("write", "missing"),
    "a twice": ("write", "missing"), "a null": ("keep", "nothing_to_delete"), "a equal": ("keep", "equal"),
    "z 2": ("write", "missing"), "z 1": ("write", "missing"),
}  # fmt: skip
KEPT, TAKEN, OPEN = ("keep", "conflict_kept"), ("write", "source_taken"), ("conflict", "undecided")


@pytest.mark.parametrize(
    ("policy", "earlier", "later", "gone", "z", "both"),
    [
        (Policy.KEEP_TARGET, KEPT, KEPT, KEPT, b"from z", b"strong"),
        (Policy.NEWEST, KEPT, TAKEN, ("delete", "source_taken"), b"from z", b"weak"),
        (Policy.FAIL, OPEN, OPEN, OPEN, b"from z", b"strong"),
        (Policy.TAKE_SOURCE, TAKEN, TAKEN, ("delete", "source_taken"), b"from b", b"strong"),
    ],
)  # fmt: skip
def test_each_key_is_decided(
    stage: Stage, shuffled: Shuffled, policy: Policy, earlier: tuple[str, str], later: tuple[str, str],
    gone: tuple[str, str], z: bytes, both: bytes,
) -> None:  # fmt: skip
    plan = stage.plan(shuffled.folder, shuffled.sources, shuffled.targets, *shuffled.routes, policy=policy, parts=PARTS)
    expected = {**ALWAYS, "a earlier": earlier, "a later": later, "a gone": gone}
    if policy is Policy.FAIL:
        expected["z 1"] = ("conflict", "rename_collides")
    sample = stage.stages.sample(shuffled.folder)
    found = {f"{one.route.target_connector} {json.loads(one.key)[1]['f']}": one for one in sample}
    assert {name: (one.action, one.reason) for name, one in found.items()} == expected
    assert [one.action == "keep" for one in sample] == sorted(one.action == "keep" for one in sample)
    values = {name: one.source_value for name, one in found.items()}
    assert (values["z 1"], values["a both"], values["a twice"]) == (z, both, b"newer")
    assert (values["a null"], values["a transaction"]) == (None, b"in a transaction")
    moved = found["a gone"]
    assert (moved.before, moved.partition, moved.partitions) == (b"t", AWAY, PARTITIONS)
    assert found["a missing"].source[0] == shuffled.sources[1].name
    tally = plan.tally
    tally.check()
    assert (tally.records, tally.older, tally.unowned, tally.not_selected, tally.superseded, tally.keys) == (
        17, 2, 1, 1, 2, 11,
    )  # fmt: skip
    assert (tally.conflicts, tally.scattered) == (4, 1)
    assert sum(tally.connector_counts["a"].values()) == 9


def test_what_is_decided_is_kept_written_and_compared(stage: Stage, shuffled: Shuffled) -> None:
    stages, folder = stage.stages, shuffled.folder
    to_a, to_z = (topic.name for topic in shuffled.targets)
    plan = stage.plan(folder, shuffled.sources, shuffled.targets, *shuffled.routes, parts=PARTS)
    assert stages.write_tasks(plan) == 2
    there = {record.key: record for record in stage.store.read(to_a).records}
    values = {
        **{key("a", each): value for each, value in (("missing", b"new"), ("twice", b"newer"), ("both", b"strong"))},
        **{key("a", each): b"s" for each in ("earlier", "later")},
        key("a", "gone"): None,
        key("a", "transaction"): b"in a transaction",
        key("z", 1): b"from b",
        key("z", 2): b"b2",
    }
    where = {each: there[each].partition if each in there else partition_for(each, PARTITIONS) for each in values}
    _is_backed_up(stage, plan, folder, there, values)

    sent = stages.write(folder / "decisions", plan, tasks=2, records=9)
    assert (sent.topics, sent.records()) == ({to_a: (7, 1), to_z: (2, 0)}, 9)
    places = {(to_a if each.startswith(b'["a') else to_z, where[each]) for each in values}
    assert set(sent.last_offsets) == places
    ids = stage.ids(plan)
    assert set(ids) <= {f"{plan.transactional_id()}-{task}" for task in range(2)}
    assert len(ids) == sent.transactions
    now = stage.planned(to_a, to_z)
    assert {place: _end_of_data(stage, *place) for place in places} == sent.last_offsets
    found = {**stage.newest(to_a), **stage.newest(to_z)}
    stay = {key("a", "equal"): b"1", key("a", "kept"): b"k"}
    assert found == {
        **{each: (where[each], value) for each, value in values.items()},
        **{each: (there[each].partition, value) for each, value in stay.items()},
    }
    compared = stages.compare(folder, plan, now, side="target")
    assert (compared.compared, compared.differing, compared.mismatches) == (11, 0, ())
    assert stages.unwritten(folder, plan, now, folder / "unwritten") == 0

    before = {topic.name: topic for topic in shuffled.targets}
    stages.snapshot(stage.planned(to_a, to_z, after=before), folder / "drift-target", parts=PARTS)
    assert stages.new_offsets(folder / "drift-target", folder, plan, side="target") == []
    assert stages.newer(folder / "drift-target", folder) == 0
    _someone_writes(stage, shuffled, plan)


def _is_backed_up(
    stage: Stage, plan: MigrationPlan, folder: Path, there: Mapping[bytes | None, Record],
    values: Mapping[bytes, bytes | None],
) -> None:  # fmt: skip
    """What the target has of each key that is sent, or a tombstone where it will be."""
    to_a, to_z = (topic.name for topic in plan.targets)
    expected = []
    for each, value in values.items():
        topic = to_a if each.startswith(b'["a') else to_z
        absent = Record(topic, partition_for(each, PARTITIONS), -1, -1, each, None)
        written = None if value is None else value.decode()
        expected.append(record_line(there.get(each, absent), {"written": written, "cluster_id": plan.cluster_id}))
    assert sorted(_backup(stage.stages, plan, folder).decode().splitlines()) == sorted(expected)


def _backup(stages: MigrationStages, plan: MigrationPlan, folder: Path) -> bytes:
    """As lines."""
    return b"".join(backup_lines(rows, cluster_id=plan.cluster_id) for rows in stages.backup(folder, plan))


def _end_of_data(stage: Stage, topic: str, partition: int) -> int:
    return max(record.offset for record in stage.store.read(topic).records if record.partition == partition)


def _someone_writes(stage: Stage, shuffled: Shuffled, plan: MigrationPlan) -> None:
    """Into both sides, after the migration."""
    stages, folder = stage.stages, shuffled.folder
    to_a, to_z = (topic.name for topic in shuffled.targets)
    before = {topic.name: topic for topic in stage.planned(*shuffled.names)}
    late, gone, twice = key("a", "later"), key("a", "gone"), key("a", "twice")
    stage.put(to_a, (late, b"x", 20), (key("a", "missing"), b"null", 20), (key("a", "earlier"), b"s", 20))
    stage.put(to_a, (gone, b"x", 20), partition=AWAY)
    stage.put(to_a, (twice, b"long ago", -1000), partition=(partition_for(twice, PARTITIONS) + 1) % PARTITIONS)
    stage.put(shuffled.sources[1].name, (key("b", 2), b"b3", 20), (key("c", 1), b"c2", 20), (b"nobody", b"x", 20))
    now = stage.planned(to_a, to_z)

    def wrong(status: str, each: bytes, expected: bytes | None, actual: bytes | None) -> Mismatch:
        at = AWAY if each == gone else partition_for(each, PARTITIONS)
        return Mismatch("target", status, "a", to_a, at, each, expected, actual)

    compared = stages.compare(folder, plan, now, side="target")
    assert compared.mismatches == (
        wrong("unexpected", gone, None, b"x"),
        wrong("differs", late, b"s", b"x"),
        wrong("deleted", key("a", "missing"), b"new", None),
    )
    assert (compared.compared, compared.differing) == (11, 3)
    stages.snapshot(stage.planned(to_a, to_z, after=before), folder / "drift-target", parts=PARTS)
    assert stages.new_offsets(folder / "drift-target", folder, plan, side="target") == ["a"]
    assert stages.newer(folder / "drift-target", folder) == 4, "nothing of what was sent, and nothing of what is kept"
    lines = list(read_records(_backup(stages, plan, folder).splitlines(keepends=True), name="backup"))
    assert len(lines) == 9
    found = {record.key: record for record in lines}
    assert [found[each].value for each in (late, key("a", "missing"), gone)] == [b"x", b"null", b"x"]
    assert found[gone].partition == AWAY
    assert found[twice].value is None, "what is on another partition is not what is replaced"
    source = shuffled.sources[1].name
    stages.snapshot(stage.planned(source, after=before), folder / "drift-source", parts=PARTS, renames=RENAMES)
    assert stages.new_offsets(folder / "drift-source", folder, plan, side="source") == ["b", "c"]
    (differs,) = stages.compare(folder, plan, stage.planned(*shuffled.names[:2]), side="source").mismatches
    at = partition_for(key("b", 2), PARTITIONS)
    assert differs == Mismatch("source", "differs", "b", source, at, key("b", 2), b"b2", b"b3")

    assert stages.unwritten(folder, plan, now, folder / "unwritten") == 3
    again = stages.write(folder / "unwritten", plan, tasks=2, records=3)
    assert again.topics == {to_a: (3, 1)}
    assert set(stage.ids(plan)) <= {f"{plan.transactional_id()}-{task}" for task in range(2)}
    assert stages.compare(folder, plan, stage.planned(to_a, to_z), side="target", limit=1).differing == 0


def test_older_copies_of_what_is_written(stage: Stage, name: str, tmp_path: Path) -> None:
    """Those on other partitions than the newest; what is put over them is neither drift nor a difference."""
    stages, source, target = stage.stages, f"{name}-source", f"{name}-target"
    stage.create(source, target)
    written, deleted, kept, alone = (key("a", each) for each in ("written", "deleted", "kept", "alone"))
    stage.put(source, (written, b"s", 9), (deleted, None, 9), (kept, b"k", 9), (alone, b"s", 9))
    away = {each: (partition_for(each, PARTITIONS) + 1) % PARTITIONS for each in (written, deleted, kept, alone)}
    for each in away:
        stage.put(target, (each, b"old", 1), partition=away[each])
    stage.put(target, (written, b"t", 2), (deleted, b"t", 2), (kept, b"k", 2))
    sources, targets = stage.planned(source), stage.planned(target)
    stages.snapshot(sources, tmp_path / "source")
    assert not stages.snapshot(targets, tmp_path / "target").in_place
    plan = stage.plan(tmp_path, sources, targets, ConnectorRoute("a", "a", target))
    assert stages.find_stale(tmp_path) == 2
    copies = {each.key: each for each in stages.stale(tmp_path)}
    assert {each: (copy.topic, copy.partition, copy.value, copy.timestamp_ms) for each, copy in copies.items()} == {
        each: (target, away[each], b"old", T + 1000) for each in (written, deleted)
    }
    stage.put(target, (written, None, 10), partition=away[written])
    stage.put(target, (deleted, None, 10), partition=away[deleted])
    assert stages.unwritten(tmp_path, plan, stage.planned(target), tmp_path / "unwritten") == 3, (
        "a tombstone elsewhere is not the deletion"
    )
    sent = stages.write(tmp_path / "decisions", plan, tasks=1, records=3, timestamp_ms=T + 10_001)
    assert sent.records() == 3
    now = stage.planned(target)
    assert {each.timestamp_ms for each in stage.store.read(target).records if each.value == b"s"} == {T + 10_001}
    assert stages.unwritten(tmp_path, plan, now, tmp_path / "unwritten") == 0
    assert stages.compare(tmp_path, plan, now, side="target").differing == 0
    stages.snapshot(stage.planned(target, after={target: targets[0]}), tmp_path / "drift-target")
    assert stages.new_offsets(tmp_path / "drift-target", tmp_path, plan, side="target") == []
    assert stages.newer(tmp_path / "drift-target", tmp_path) == 0
    stage.put(target, (written, None, 20), partition=away[written])
    shadowed = stages.compare(tmp_path, plan, stage.planned(target), side="target")
    assert [(each.key, each.status) for each in shadowed.mismatches] == [(written, "deleted")], "for who goes by time"
    stage.put(target, (written, b"s", 21))
    assert stages.compare(tmp_path, plan, stage.planned(target), side="target").differing == 0
    stage.put(target, (written, b"old", 11), partition=away[written])
    stage.put(target, (written, b"s", 12))
    again = stages.compare(tmp_path, plan, stage.planned(target), side="target")
    assert again.mismatches == (Mismatch("target", "unexpected", "a", target, away[written], written, None, b"old"),)


def test_parts_are_decided_and_written_each_by_its_task(stage: Stage, name: str, tmp_path: Path) -> None:
    stages, parts = stage.stages, ((0,), (1, 2))
    source, target = f"{name}-source", f"{name}-target"
    stage.create(source, target)
    keys = [key("a", number) for number in range(12)]
    homes = [partition_for(each, PARTITIONS) for each in keys]
    assert set(homes) == {0, 1, 2}
    stage.put(source, *((each, b"1", 1) for each in keys), (keys[0], b"2", 2), (keys[1], None, 2))
    stage.put(target, (keys[1], b"t", 1), (keys[2], b"t", 1), (keys[3], b"1", 1))
    sources, targets = stage.planned(source), stage.planned(target)
    assert stages.snapshot(sources, tmp_path / "source", parts=parts).in_place
    assert stages.snapshot(targets, tmp_path / "target", parts=parts).in_place
    plan = stage.plan(tmp_path, sources, targets, ConnectorRoute("a", "a", target), parts=parts)
    assert (plan.tally.records, plan.tally.older, plan.tally.keys, plan.tally.conflicts) == (14, 2, 12, 2)
    assert plan.tally.counts == {"write": 10, "delete": 1, "keep": 1, "conflict": 0}
    assert len(stages.sample(tmp_path, limit=5)) == 5
    assert len(_backup(stages, plan, tmp_path).splitlines()) == 11
    assert stages.write_tasks(plan) == 2
    sent = stages.write(tmp_path / "decisions", plan, tasks=2, records=11)
    assert (sent.topics, sent.transactions) == ({target: (11, 1)}, 2)
    assert stage.ids(plan) == [f"{plan.transactional_id()}-{task}" for task in range(2)]
    compared = stages.compare(tmp_path, plan, stage.planned(target), side="target")
    assert (compared.compared, compared.differing) == (12, 0)
    stage.put(target, (keys[4], None, 5), (keys[5], b"x", 5), (keys[6], b"x", 5))
    compared = stages.compare(tmp_path, plan, stage.planned(target), side="target", limit=2)
    assert (compared.compared, compared.differing) == (12, 3)
    assert compared.mismatches == tuple(
        Mismatch("target", status, "a", target, partition_for(each, PARTITIONS), each, b"1", actual)
        for each, status, actual in ((keys[4], "deleted", None), (keys[5], "differs", b"x"))
    )


def test_a_file_is_read_and_written(stage: Stage, tmp_path: Path) -> None:
    given = [
        Record("other", number, -1, -1, each, value)
        for number, each, value in ((0, key("a", 1), b"1"), (0, key("a", 2), None), (0, key("a", 1), b"2"))
    ] + [Record("other", 3, -1, -1, b"nobody", b"x"), Record("other", 4, -1, -1, key("a", 0), b"\xff")]
    dump, out = tmp_path / "dump.ndjson", tmp_path / "out.ndjson"
    dump.write_text("".join(f"{record_line(record)}\n" for record in given))
    source = PlannedTopic(f"file:{dump}", "digest", 25, 1)
    target = PlannedTopic(f"file:{out}", None, 25, 1)
    assert stage.stages.snapshot([source], tmp_path / "source").connectors == {"a"}
    assert stage.stages.snapshot([target], tmp_path / "target").connectors == set()
    plan = stage.plan(tmp_path, [source], [target], ConnectorRoute("a", "b", target.name))
    assert (plan.tally.records, plan.tally.older, plan.tally.unowned) == (5, 1, 1)
    assert plan.tally.counts == {"write": 2, "delete": 0, "keep": 1, "conflict": 0}
    sent = stage.stages.write(tmp_path / "decisions", plan, tasks=1, records=2)
    assert (sent.topics, sent.last_offsets) == ({str(out): (2, 0)}, {})
    with out.open("rb") as file:
        found = list(read_records(file, name="out"))
    assert found == [
        Record("connect-offsets", partition_for(key("b", number), 25), -1, -1, key("b", number), value)
        for number, value in ((0, b"\xff"), (1, b"2"))
    ]


def test_a_connectors_own_topic_gives_its_offsets_alone(stage: Stage, name: str, tmp_path: Path) -> None:
    """Those that others have left there went over what they have in topics of their own."""
    stages, of_a, of_b, target = stage.stages, f"{name}-1", f"{name}-2", f"{name}-target"
    stage.create(of_a, of_b, target)
    stage.put(of_a, (key("a", 1), b"a", 1), (key("b", 1), b"left", 9), (key("c", 1), b"left", 9), (b"nobody", b"x", 1))
    stage.put(of_b, (key("b", 1), b"b", 2))
    sources = tuple(
        replace(topic, connectors=(owner,)) for topic, owner in zip(stage.planned(of_a, of_b), "ab", strict=True)
    )
    targets = stage.planned(target)
    stages.snapshot(sources, tmp_path / "source", parts=PARTS)
    stages.snapshot(targets, tmp_path / "target", parts=PARTS)
    routes = [ConnectorRoute(each, each, target) for each in "ab"]
    plan = stage.plan(tmp_path, sources, targets, *routes, parts=PARTS)
    plan.tally.check()
    assert {one.key: one.source_value for one in stages.sample(tmp_path)} == {key("a", 1): b"a", key("b", 1): b"b"}
    assert (plan.tally.keys, plan.tally.superseded, plan.tally.unowned, plan.tally.not_selected) == (2, 0, 1, 2)
    assert plan.tally.others == {of_a: {"b": 1, "c": 1}}
    before = {topic.name: topic for topic in sources}
    stage.put(of_a, (key("b", 1), b"again", 10))
    drift = [replace(each, connectors=("a",)) for each in stage.planned(of_a, after=before)]
    stages.snapshot(drift, tmp_path / "drift-source", parts=PARTS)
    assert stages.new_offsets(tmp_path / "drift-source", tmp_path, plan, side="source") == []


@pytest.mark.parametrize("order", ["as in the log", "backwards"])
def test_a_dump_of_a_log_is_read_as_the_topic_itself(stage: Stage, name: str, tmp_path: Path, order: str) -> None:
    """A key that lay there several times became as many writes, and an older one of them could be the last."""
    stages, source, target = stage.stages, f"{name}-source", f"{name}-target"
    stage.create(source, target)
    twice, deleted, back, copied = (key("a", each) for each in ("twice", "deleted", "back", "copied"))
    stage.put(source, *((twice, b"%d" % number, number) for number in range(1, 4)), (deleted, b"1", 1))
    stage.put(source, (deleted, None, 2), (back, None, 1), (back, b"2", 2), (copied, b"at home", 3))
    stage.put(source, (copied, b"older", 1), (copied, b"away", 4), partition=AWAY)
    stage.put(target, (twice, b"3", 9), (deleted, b"t", 9))
    dump = tmp_path / "dump.ndjson"
    log = [record._replace(headers=()) for record in stage.store.read(source).records]
    log = log if order == "as in the log" else log[::-1]
    dump.write_text("".join(f"{record_line(record)}\n" for record in log))
    of_file, of_topic = PlannedTopic(f"file:{dump}", "digest", PARTITIONS, 1), stage.planned(source)[0]
    targets, found = stage.planned(target), []
    for number, one in enumerate((of_topic, of_file)):
        folder = tmp_path / str(number)
        stages.snapshot([one], folder / "source", parts=PARTS)
        stages.snapshot(targets, folder / "target", parts=PARTS)
        plan = stage.plan(
            folder, [one], targets, ConnectorRoute("a", "a", target), policy=Policy.TAKE_SOURCE, parts=PARTS
        )
        plan.tally.check()
        decided = [(each.key, each.source[1:], each.action, each.source_value) for each in stages.sample(folder)]
        found.append((sorted(decided), plan.tally))
    assert found[0] == found[1]
    assert {each[0]: each[2:] for each in found[1][0]} == {
        twice: ("keep", b"3"), deleted: ("delete", None), back: ("write", b"2"), copied: ("write", b"away"),
    }  # fmt: skip
    assert (found[1][1].keys, found[1][1].older, found[1][1].superseded, found[1][1].scattered) == (4, 6, 0, 1)


@pytest.mark.parametrize(("records", "parts"), [(0, 1), (9_999, 1), (10_000, 2), (1_000_000, 2)])
def test_few_records_are_not_worth_a_task(stage: Stage, records: int, parts: int) -> None:
    assert stage.stages.least_parts(records) == parts
