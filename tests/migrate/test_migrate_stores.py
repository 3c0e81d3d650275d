"""Which stores a migration takes, and what files among them mean."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from eosctl.core.allowances import Allowances
from eosctl.core.configs.records import Selection
from eosctl.core.offsets.migration import PlannedTopic
from eosctl.core.offsets.views import Policy
from eosctl.core.records import read_records
from eosctl.errors import ExitCode, InputFileError, RefusedError, StalePlanError, UsageError
from eosctl.migrate.stores import planned_targets, profile_of, source_stores, target_name_of
from eosctl.output import render_report
from eosctl.target import Target
from tests.fakes.migration import KEY, SOURCE, Scene, connector, key_of, plan_of
from tests.reports import codes

OWN = {"offsets.storage.topic": "own"}


@pytest.mark.parametrize(
    ("store", "pattern", "connectors", "topic"),
    [
        ("global", None, None, "connect-offsets"),
        ("some-topic", None, None, "some-topic"),
        ("dedicated", "offsets-{connector}", None, "offsets-a"),
        ("dedicated", "offsets-{connector}", {"a": connector("STOPPED", config=OWN)}, "own"),
        ("dedicated", "offsets-{connector}", {"b": connector("STOPPED", config=OWN)}, "offsets-a"),
        ("dedicated", None, {"a": connector("STOPPED", config=OWN)}, "own"),
        ("dedicated", None, {"a": connector("STOPPED")}, UsageError),
        ("dedicated", None, None, UsageError),
        ("dedicated", "offsets", None, UsageError),
    ],
)
def test_target_topics(scene: Scene, store: str, pattern: str | None, connectors: Any, topic: Any) -> None:
    scene.place(connectors)
    if isinstance(topic, str):
        assert target_name_of(scene.app(), store, pattern)("a") == topic
        return
    with pytest.raises(topic):
        target_name_of(scene.app(), store, pattern)("a")


def test_source_topics_keep_their_order(scene: Scene) -> None:
    scene.place(
        {
            "a": connector("STOPPED", config=OWN),
            "b": connector("STOPPED"),
            "c": connector("STOPPED", config=OWN),
        }
    )
    stores = ("dedicated", "global", "more", "global")
    found = source_stores(scene.app(), stores, Selection(connectors=("a",)))
    assert list(found.items()) == [("own", ("a", "c")), ("connect-offsets", None), ("more", None)]
    named = source_stores(scene.app(), ("dedicated", "own"), Selection(connectors=("a",)))
    assert named == {"own": None}, "whoever has offsets there, as it is named"


def test_a_topic_that_only_a_worker_can_resolve_is_named_and_left_out(scene: Scene) -> None:
    """It was asked for as a topic, and no migration of the group got planned."""
    reference = {"offsets.storage.topic": "${file:/x:y}"}
    far = {"offsets.storage.topic": "far", "producer.override.bootstrap.servers": "far:1"}
    scene.place(
        {
            "a": connector("STOPPED", config=OWN),
            "b": connector("STOPPED", config=reference),
            "f": connector("STOPPED", config=far),
        }
    )
    assert source_stores(scene.app(), ["dedicated"], Selection(all_connectors=True)) == {"own": ("a",)}
    told = " ".join(event.message for event in scene.events)
    assert "connector b: its offsets.storage.topic is ${file:/x:y}" in told
    assert "the config of connector f names Kafka brokers of its own; what it has there is not read" in told
    target = target_name_of(scene.app(), "dedicated", None)
    assert target("a") == "own"
    with pytest.raises(RefusedError, match="connector b: its offsets"):
        target("b")
    assert target_name_of(scene.app(), "dedicated", "o-{connector}")("b") == "o-b"


def shared_scene(scene: Scene) -> dict[str, Any]:
    """b once shared o's topic and has its own since, x went back to the global one, as gone was deleted."""
    for topic in ("offsets-shared", "z-b"):
        scene.add_topic(topic)
    left = {key_of("b"): b'{"n":1}', key_of("x"): b'{"n":1}', key_of("gone"): b'{"n":1}', b"nobody": b"1"}
    scene.put("offsets-shared", {key_of("o"): b'{"n":7}', **left})
    scene.put("z-b", {key_of("b"): b'{"n":500}'})
    scene.put(SOURCE, {key_of("x"): b'{"n":900}'})
    own = {"o": {"offsets.storage.topic": "offsets-shared"}, "b": {"offsets.storage.topic": "z-b"}}
    scene.place({name: connector("STOPPED", config=own.get(name)) for name in ("o", "b", "x")})
    return {"sources": ("dedicated",), "target": "global", "selection": Selection(all_connectors=True)}


@pytest.mark.parametrize("policy", list(Policy))
def test_from_dedicated_each_connector_has_its_own_topic_alone(scene: Scene, policy: Policy) -> None:
    """What a connector had left in a topic that it shared once went over its offsets of today, without a word."""
    wanted = shared_scene(scene)
    report = scene.prepared(**wanted, policy=policy).report()
    plan = plan_of(report)
    assert codes(report) == ["others_offsets"]
    assert {route.connector for route in plan.routes} == {"o", "b"}
    assert (plan.tally.keys, plan.tally.unowned, plan.tally.not_selected, plan.tally.superseded) == (2, 1, 3, 0)
    assert plan.tally.others == {"offsets-shared": {"b": 1, "gone": 1, "x": 1}}
    assert scene.apply(plan).exit_code == 0
    found = scene.topics.newest(SOURCE)
    assert [found[key_of(name)] for name in ("o", "b", "x")] == [b'{"n":7}', b'{"n":500}', b'{"n":900}']
    named = scene.plan(**{**wanted, "sources": ("offsets-shared",)}, policy=Policy.TAKE_SOURCE)
    assert {route.connector for route in named.routes} == {"b", "gone", "o", "x"}
    assert (named.tally.others, named.tally.keys) == ({}, 4)


def test_what_others_write_into_a_dedicated_topic_is_no_drift(scene: Scene) -> None:
    plan = scene.plan(**shared_scene(scene))
    scene.put("offsets-shared", {key_of("b"): b'{"n":2}', key_of("x"): b'{"n":2}'})
    assert scene.apply(plan).exit_code == 0
    assert scene.topics.newest(SOURCE)[key_of("b")] == b'{"n":500}'
    selection = Selection(connectors=("b", "o"))
    again = scene.plan(sources=("dedicated",), target="global", selection=selection, policy=Policy.TAKE_SOURCE)
    scene.put("offsets-shared", {key_of("o"): b'{"n":8}'})
    with pytest.raises(StalePlanError, match="new offsets of o since"):
        scene.apply(again)


def test_a_new_target_is_of_all_connectors(scene: Scene) -> None:
    """It is made like the first source, also where that gives the offsets of some alone."""
    plan = scene.plan(**{**shared_scene(scene), "target": "new-topic"})
    assert [(topic.name, topic.topic_id, topic.connectors) for topic in plan.targets] == [("new-topic", None, None)]


def test_to_dedicated_each_connector_has_its_own_topic_alone(scene: Scene) -> None:
    wanted = shared_scene(scene)
    scene.put(SOURCE, {key_of("b"): b'{"n":600}'})
    plan = scene.plan(
        **{**wanted, "sources": ("global",), "target": "dedicated", "selection": Selection(connectors=("b",))},
        policy=Policy.TAKE_SOURCE,
    )
    assert ([topic.name for topic in plan.targets], plan.tally.keys) == (["z-b"], 1)
    assert scene.apply(plan).exit_code == 0
    assert scene.topics.newest("offsets-shared")[key_of("b")] == b'{"n":1}'


@pytest.mark.parametrize(
    ("store", "name"),
    [
        ("topic", "topic"),
        ("global", "connect-offsets"),
        ("topic@old", "topic@old"),
        ("global@old", "old-offsets@old"),
        ("file:/d/dump.ndjson", "file:/d/dump.ndjson"),
        ("/d/dump.jsonl", "file:/d/dump.jsonl"),
        ("/d/e@f/dump.parquet", "file:/d/e@f/dump.parquet"),
        ("/d/dump.txt", UsageError),
        ("dedicated@old", UsageError),
        ("topic@", UsageError),
    ],
)
def test_how_stores_are_named(scene: Scene, store: str, name: Any) -> None:
    app = replace(scene.app(), target_of=lambda _profile: Target(offset_topic="old-offsets"))
    if isinstance(name, str):
        assert source_stores(app, [store], Selection(all_connectors=True)) == {name: None}
        assert target_name_of(app, store, None)("a") == name
        return
    for resolve in (lambda: source_stores(app, [store], Selection()), lambda: target_name_of(app, store, None)):
        with pytest.raises(name):
            resolve()


def test_a_pattern_names_a_topic_per_connector(scene: Scene) -> None:
    app = replace(scene.app(), target_of=lambda _profile: Target())
    assert target_name_of(app, "offsets-{connector}@old", None)("a") == "offsets-a@old"
    with pytest.raises(UsageError, match="one file"):
        target_name_of(app, "/d/{connector}.ndjson", None)


@pytest.mark.parametrize(
    ("target", "pattern"), [("dedicated", "offsets-{connector}"), ("offsets-{connector}", None), ("{connector}", None)]
)
@pytest.mark.parametrize("name", ["orders@prod", "a/b", "dir/x.parquet"])
def test_a_connector_whose_name_is_no_topics_is_refused(
    scene: Scene, target: str, pattern: str | None, name: str
) -> None:
    """Its name was read as a store: a topic of another cluster, a local file, an unexpected KeyError."""
    scene.put_all([name])
    with pytest.raises(UsageError, match=f"connector {name}: .* can't be a topic"):
        scene.prepared(target=target, dedicated_topic=pattern)
    assert not any(call.startswith("write") for call in scene.calls)


def test_a_topic_that_is_named_like_a_file_is_a_topic(scene: Scene) -> None:
    """Without running checks, and without a backup, all offsets went to a local file x.parquet."""
    scene.put_all(["x.parquet", "global"])
    only = Selection(connectors=("x.parquet", "global"))
    plan = scene.plan(target="{connector}", selection=only)
    assert [topic.name for topic in plan.targets] == ["global", "x.parquet"]
    assert plan.target_file() is None


def test_a_file_whose_path_has_an_at_sign_is_on_no_cluster(scene: Scene, tmp_path: Path) -> None:
    """What came after the @ was looked up among the profiles."""
    (tmp_path / "e@f").mkdir()
    target = tmp_path / "e@f" / "dump.ndjson"
    assert profile_of(str(target)) is None
    assert scene.plan(target=str(target)).target_file() == str(target)


def test_a_file_that_a_cut_off_run_wrote_is_written_again(scene: Scene, tmp_path: Path) -> None:
    """It used to be taken for someone else's."""
    target = tmp_path / "out.ndjson"
    plan = scene.plan(target=str(target))
    bring_back = scene.lose_decisions(plan)
    report = scene.apply(plan)
    assert [(row.stage, row.outcome) for row in report.rows] == [("write", "failed"), ("verify", "not_reached")]
    assert "to be sent, and 0 confirmed" in report.problems[0].message
    target.write_text("{}")
    bring_back()
    assert scene.apply(plan, resume=True).exit_code is ExitCode.OK
    assert [record.key for record in read_records([target.read_bytes()], name="out")] == [KEY]


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "dump.ndjson"
    path.write_text('{"topic":"t","partition":0,"key":"[\\"a\\",{}]","value":"1"}\n')
    return path


def test_a_file_that_changed_since_the_plan(scene: Scene, dump: Path) -> None:
    prepared = scene.prepared(sources=(str(dump),))
    assert prepared.apply is not None
    dump.write_text(dump.read_text() * 2)
    with pytest.raises(StalePlanError, match=r"dump.ndjson changed since"):
        prepared.apply()


def test_a_missing_file(scene: Scene) -> None:
    with pytest.raises(InputFileError, match="no such file"):
        scene.prepared(sources=("/nowhere/dump.ndjson",))


def test_a_target_file_that_is_there_is_not_overwritten(scene: Scene, dump: Path) -> None:
    with pytest.raises(RefusedError, match="exists"):
        scene.prepared(target=str(dump))


def test_into_a_file_nothing_is_backed_up_and_nobody_need_stop(scene: Scene, tmp_path: Path) -> None:
    scene.place({"a": connector("RUNNING", 1)})
    prepared = scene.prepared(Allowances(), target=str(tmp_path / "out.ndjson"))
    assert prepared.apply is not None
    result = prepared.apply()
    assert (result.data.backup, result.data.created) == (None, [])
    assert "backup" not in scene.calls
    stream = io.StringIO()
    render_report(prepared.report(), output="text", stream=stream, color=False)
    assert f"creates file {tmp_path / 'out.ndjson'}\n" in stream.getvalue(), "it used to be called a topic"


def test_hundreds_of_new_topics_take_no_connection_each(scene: Scene) -> None:
    """The cluster's id was asked for once per missing topic, each time over a new connection: 500 never got planned."""
    app, opened = scene.app(), []

    def open_topics(here: Any) -> Any:
        opened.append(here)
        return app.open_topics(here)

    source = PlannedTopic("connect-offsets", "id-global", 25, 3)
    names = [f"offsets-{number}" for number in range(500)]
    targets = planned_targets(replace(app, open_topics=open_topics), names, sources=[source])
    assert [(one.name, one.partitions, one.replication_factor) for one in targets] == [(name, 25, 3) for name in names]
    assert len(opened) <= 4
