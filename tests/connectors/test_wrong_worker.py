"""A named worker that is of another Kafka cluster, or of another group, and has a connector of the same name."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from eosctl.connectors.topics import configured_topics, find_topics
from eosctl.errors import RefusedError
from eosctl.fence.gather import FenceRequest
from eosctl.fence.plan import apply_fence, plan_fence
from eosctl.offsets.history.sources import KNOWN_SOURCES
from eosctl.rescue.apply import apply_rescue
from eosctl.rescue.plan import plan_rescue
from tests.audit.happenings import connector, honest
from tests.audit.log_scene import OTHER_OUT, OUT, LogScene
from tests.conftest import Invoke, Outcome
from tests.fakes.config_topic import config_records, created
from tests.fakes.config_world import ConfigWorld
from tests.fakes.faults import Call
from tests.fakes.offset_topics import GLOBAL, IN_OWN, OWN, A, OffsetWorld
from tests.fakes.rescue_scene import Scene, stop
from tests.fakes.world import CONFIGS, OFFSETS, STATUSES, World
from tests.reports import codes

FAR = "http://far:8083"
ROUTED = {"topic": OUT, "transforms": "route"}


def add_far(world: World, *, cluster_id: str = "elsewhere") -> None:
    """A worker of group h on `cluster_id`, with a connector c, which has written to OUT alone."""
    there = world.other_group("h", FAR)
    there.kafka_cluster_id = cluster_id
    there.add("c", {"topic": OUT}, tasks=1).topics.add(OUT)


def routed(*, cluster_id: str = "elsewhere") -> LogScene:
    """Connector c has written to OUT, and without a transaction to OTHER_OUT, where a transform sent the record."""
    scene = LogScene()
    scene.topics.add_topic(CONFIGS, config={"cleanup.policy": "compact"})
    made = scene.connect.add("c", ROUTED, tasks=1)
    made.topics |= {OUT, OTHER_OUT}
    scene.keep_config("connector-c", {"properties": made.config})
    honest(scene)
    scene.plain(OTHER_OUT, b"k", b"v")
    add_far(scene, cluster_id=cluster_id)
    return scene


AUDIT = ("-b", "memory:9092", "-g", "g", "audit", "--connector", "c", "--since", "beginning", "-o", "json")


def test_an_audit_does_not_take_the_topics_of_another_clusters_connector(invoke: Invoke) -> None:
    """It was exactly_once: the other cluster's connector of the same name had not written to one of the topics."""
    scene = routed()
    done = invoke(*AUDIT, **scene.surroundings)
    assert (done.exit_code, connector(done)["verdict"]) == (3, "not_exactly_once")
    done = invoke(*AUDIT, "-u", FAR, **scene.surroundings)
    assert (done.exit_code, [each["code"] for each in done.json()["errors"]]) == (6, ["refused"])


def test_an_audit_does_not_take_the_topics_of_another_groups_connector(invoke: Invoke) -> None:
    scene = routed(cluster_id="fake-cluster-id")
    done = invoke(*AUDIT, "-u", FAR, **scene.surroundings)
    assert (done.exit_code, [each["code"] for each in done.json()["errors"]]) == (6, ["refused"])


CLASSES = [each for source in KNOWN_SOURCES for each in source.classes.split(", ")]
FILE, MIRROR = (each for each in CLASSES if "FileStream" in each or "MirrorSource" in each)


@pytest.mark.parametrize("name", [*CLASSES, "com.example.OrdersSourceConnector", "FileStreamSource"])
@pytest.mark.parametrize(
    "more", [{}, {"transforms": "route"}, {"replication.policy.class": "com.example.Policy"}], ids=str
)
def test_an_audit_without_its_worker_takes_no_topic_of_the_config_for_all_of_them(
    invoke: Invoke, name: str, more: dict[str, str]
) -> None:
    """Only a worker knows where transforms, naming strategies and other classes send records: it was exactly_once."""
    scene = LogScene()
    scene.topics.add_topic(CONFIGS, config={"cleanup.policy": "compact"})
    made = scene.connect.add("c", {"connector.class": name, "topic": OUT, **more}, tasks=1)
    made.topics |= {OUT, OTHER_OUT}
    scene.keep_config("connector-c", {"properties": made.config})
    honest(scene)
    scene.plain(OTHER_OUT, b"k", b"v")
    scene.connect.down.add("http://w0:8083")
    done = invoke(*AUDIT, **scene.surroundings)
    is_known = name in (FILE, "FileStreamSource") and not more  # what is mirrored is in another cluster
    assert (connector(done)["verdict"] == "unproven") is not is_known
    assert done.exit_code == (0 if is_known else 7)


@pytest.mark.parametrize("name", [MIRROR, "com.example.MirrorSourceConnector"])
def test_the_topics_of_a_mirror_are_named_by_its_alias(name: str) -> None:
    config = {"connector.class": name, "source.cluster.alias": "a"}
    configured = configured_topics(config)
    assert (configured.written, configured.complete) == (("a.*",), name == MIRROR)
    assert not configured_topics(config | {"replication.policy.class": "com.example.Policy"}).complete


@pytest.fixture
def owned() -> OffsetWorld:
    """Connector c has its offsets in OWN, and that of the other cluster has no topic of its own."""
    world = OffsetWorld()
    for topic in (GLOBAL, OWN):
        world.topics.add_topic(topic, 5)
    world.topics.add_topic(CONFIGS, 1)
    world.topics.put(OWN, A, b'{"n":1}')
    world.keep_config("connector-c", {"properties": world.connect.add("c", IN_OWN, state="STOPPED").config})
    add_far(world)
    return world


@pytest.mark.parametrize("command", [("offsets", "list", "--connector", "c"), ("offsets", "lint")])
@pytest.mark.parametrize(
    ("cluster_id", "code"), [("elsewhere", "other_kafka_cluster"), ("memory-cluster", "other_group")]
)
def test_own_offsets_topics_are_those_of_this_cluster_and_group(
    invoke: Invoke, owned: OffsetWorld, command: tuple[str, ...], cluster_id: str, code: str
) -> None:
    """Those of the other cluster's connectors were looked for here."""
    owned.others[0].kafka_cluster_id = cluster_id
    where = ("-b", "memory:9092", "-g", "connect", "--offset-topic", GLOBAL)
    [here, there] = [invoke(*where, *urls, *command, "-o", "json", **owned.surroundings)
                     for urls in ((), ("-u", FAR))]  # fmt: skip
    [rows, seen] = [[each | {"age_ms": None} for each in done.json()["data"]["rows"]] for done in (there, here)]
    assert (there.exit_code, rows) == (here.exit_code, seen)
    assert OWN in there.stdout
    assert [each["code"] for each in there.json()["errors"]] == [
        *(each["code"] for each in here.json()["errors"]), code,
    ]  # fmt: skip


def test_own_offsets_topics_are_unseen_where_only_another_clusters_worker_answers(
    invoke: Invoke, owned: OffsetWorld
) -> None:
    where = ("-b", "memory:9092", "-g", "connect", "--offset-topic", GLOBAL, "--config-topic", "nowhere")
    done = invoke(*where, "-u", FAR, "offsets", "lint", "-o", "json", **owned.surroundings)
    assert done.exit_code == 7
    assert [each["code"] for each in done.json()["errors"]] == ["other_kafka_cluster", "dedicated_topics_unknown"]


def test_task_counts_are_not_compared_with_another_clusters_connectors(invoke: Invoke) -> None:
    """A source there may be a sink here, whose record is an orphan."""
    world = ConfigWorld(
        records=config_records(*created("c", 1, record=1)),
        connectors={"c": "source"},
        modes={"http://w0:8083": "enabled"},
    )
    add_far(world)
    done = invoke(
        "-b", "memory:9092", "-g", "g", "-u", FAR, "task-counts", "validate", "-o", "json", **world.surroundings
    )
    assert (done.exit_code, done.json()["data"]["summary"]["checked_against_connect"]) == (7, False)
    assert "connect_not_asked" in [each["code"] for each in done.json()["errors"]]


class Elsewhere:
    """After `lead`, the leader's address is another cluster's worker's; `asked` is what it is told to change."""

    def __init__(self, scene: Scene, *, cluster_id: str = "elsewhere", connector: str = "c") -> None:
        self.scene, self.asked = scene, list[Call]()
        self.cluster_id, self.connector = cluster_id, connector

    def lead(self, *_call: object) -> None:
        if self.scene.others:
            return
        there = self.scene.other_group("h", self.scene.connect.leader)
        there.kafka_cluster_id = self.cluster_id
        there.add(self.connector, state="STOPPED")
        for write in ("restart", "fence", "set_state"):
            there.before(write, self.asked.append)


def test_nothing_is_fenced_through_another_clusters_worker(tmp_path: Path) -> None:
    scene = Scene(state_dir=tmp_path)
    stop(scene)
    elsewhere, request = Elsewhere(scene), FenceRequest(connector="c", via="connect")
    plan = plan_fence(scene.app(), request)
    elsewhere.lead()
    with pytest.raises(RefusedError, match="uses Kafka cluster elsewhere"):
        plan_fence(scene.app(), request)
    with pytest.raises(RefusedError, match="uses Kafka cluster elsewhere"):
        apply_fence(scene.app(), plan)
    assert elsewhere.asked == []


def test_a_rescue_restarts_nothing_at_another_clusters_worker(tmp_path: Path) -> None:
    scene = Scene(state_dir=tmp_path)
    elsewhere, plan = Elsewhere(scene), plan_rescue(scene.app(), "c")
    scene.topics.after("write", elsewhere.lead)
    report = apply_rescue(scene.app(), plan)
    assert [(row.action, row.outcome) for row in report.rows][1:3] == [("write", "done"), ("restart", "failed")]
    assert codes(report) == ["refused", "rescue_again"]
    assert elsewhere.asked == []


def test_a_rescue_restarts_nothing_at_another_groups_worker(tmp_path: Path) -> None:
    """Only the Kafka cluster of what is at the leader's address was looked at."""
    scene = Scene(state_dir=tmp_path)
    elsewhere, plan = Elsewhere(scene, cluster_id=scene.cluster_id, connector="d"), plan_rescue(scene.app(), "c")
    scene.topics.after("write", elsewhere.lead)
    report = apply_rescue(scene.app(), plan)
    assert [(row.action, row.outcome) for row in report.rows][1:3] == [("write", "done"), ("restart", "failed")]
    assert codes(report) == ["refused", "rescue_again"]
    assert elsewhere.asked == []


@pytest.mark.parametrize("verb", ["stop", "pause", "restart", "trace"])
def test_no_state_is_that_of_another_groups_connector(invoke: Invoke, verb: str) -> None:
    """The other group's connector of that name was stopped."""
    world = World()
    world.connect.add("c")
    add_far(world, cluster_id=world.cluster_id)
    asked: list[Call] = []
    for write in ("restart", "set_state"):
        world.others[0].before(write, asked.append)
    words = ("c",) if verb == "trace" else ("c", "--yes")
    done = invoke("-b", "memory:9092", "-g", "g", "-u", FAR, "connectors", verb, *words, **world.surroundings)
    assert (done.exit_code, asked) == (6, []), done.stdout


def test_no_config_is_that_of_another_groups_connector(invoke: Invoke, tmp_path: Path) -> None:
    """The other group's connector of that name got the config."""
    world = World()
    world.topics.add_topic(CONFIGS, config={"cleanup.policy": "compact"})
    world.topics.add_topic(OFFSETS)
    made = world.connect.add("c", {"topic": OUT})
    world.keep_config("connector-c", {"properties": made.config})
    add_far(world, cluster_id=world.cluster_id)
    asked: list[Call] = []
    world.others[0].before("put_connector_config", asked.append)
    file = tmp_path / "c.json"
    file.write_text(json.dumps({"name": "c", "config": made.config | {"batch.size": "7"}}))
    waivers = ("--unknown-partitions", "--may-skip", "--read-again", "--yes")
    done = invoke("-b", "memory:9092", "-g", "g", "-u", FAR, "connectors", "apply", str(file), *waivers,
                  **world.surroundings)  # fmt: skip
    assert (done.exit_code, asked, "another group" in done.stderr) == (6, [], True), done.stderr


@pytest.mark.parametrize("there", ["RUNNING", "STOPPED", None])
def test_topics_are_not_those_of_a_worker_of_another_group(tmp_path: Path, there: str | None) -> None:
    """Those of another group's connector of that name were believed; one that it does not know had none."""
    scene = routed(cluster_id="fake-cluster-id")
    del scene.others[0].connectors["c"]
    if there is not None:
        scene.others[0].add("c", {"topic": OUT}, state=there).topics.add(OUT)
    found = find_topics(scene.app(tmp_path, connect_urls=(FAR,)), {"c": ROUTED})
    assert found.unreported == ("c",)


def test_a_worker_that_does_not_know_a_connector_does_not_say_that_it_has_no_topics(tmp_path: Path) -> None:
    """Without members that are seen, a worker without the connector was taken for one to which it wrote nothing."""
    scene = routed(cluster_id="fake-cluster-id")
    del scene.others[0].connectors["c"]
    found = find_topics(scene.app(tmp_path, connect_urls=(FAR,), group_id=None), {"c": ROUTED})
    assert found.unreported == ("c",)


def test_members_that_have_just_taken_over_are_of_their_group(invoke: Invoke) -> None:
    """A worker was of another group for as long as the status topic named the one that it has replaced."""
    scene = routed()
    made, url = scene.connect.connectors["c"], scene.connect.leader
    gone = "http://gone:8083"
    made.url, made.tasks[0] = gone, replace(made.tasks[0], url=gone)

    def report() -> None:
        made.url, made.tasks[0] = url, replace(made.tasks[0], url=url)

    scene.time.later(1, report)
    done = invoke(*AUDIT, "-u", url, **scene.surroundings)
    assert (done.exit_code, connector(done)["verdict"]) == (3, "not_exactly_once")


def test_topics_are_those_of_a_worker_of_this_cluster(tmp_path: Path) -> None:
    scene = routed()
    configs = {"c": ROUTED}
    found = find_topics(scene.app(tmp_path, connect_urls=(FAR,)), configs)
    assert found.unreported == ("c",)
    found = find_topics(scene.app(tmp_path, connect_urls=(FAR, "http://w0:8083")), configs)
    assert (found.unreported, found.of["c"].written) == ((), (OUT, OTHER_OUT))


@pytest.fixture
def taken_over() -> World:
    """The parts of connector c are said to be RUNNING at a lost worker, also by the one that is there."""
    world = World()
    world.topics.add_topic(STATUSES)
    made = world.connect.add("c", {"topic": OUT}, tasks=1)
    gone = "http://gone:8083"
    made.url, made.tasks[0] = gone, replace(made.tasks[0], url=gone)
    return world


def pause(invoke: Invoke, world: World, url: str = "http://w0:8083") -> Outcome:
    return invoke("-b", "memory:9092", "-g", "g", "-u", url, "connectors", "pause", "c", "--yes", **world.surroundings)


@pytest.mark.parametrize("recorded", [True, False])
def test_a_worker_whose_tasks_are_said_to_run_at_a_killed_one_is_of_its_group(
    invoke: Invoke, taken_over: World, recorded: bool
) -> None:
    """They stay there until scheduled.rebalance.max.delay.ms is over, and for 5 minutes it was of another group."""
    if not recorded:
        del taken_over.topics.topics[STATUSES]
    done = pause(invoke, taken_over)
    assert done.exit_code == (0 if recorded else 6), done.stderr


@pytest.mark.parametrize("hide", ["rebalance", "denied", "gone"])
def test_where_no_member_is_seen_the_status_topic_shows_whose_a_worker_is(
    invoke: Invoke, taken_over: World, hide: str
) -> None:
    """A worker was asked to change its connector with nothing but its Kafka cluster compared."""
    add_far(taken_over, cluster_id=taken_over.cluster_id)
    asked: list[Call] = []
    taken_over.others[0].before("set_state", asked.append)
    taken_over.connect.rebalancing = hide == "rebalance"
    if hide == "denied":
        taken_over.brokers.deny_groups.add("g")
    elif hide == "gone":
        del taken_over.brokers.state.groups["g"]
    done = pause(invoke, taken_over, FAR)
    assert (done.exit_code, asked) == (6, []), done.stderr
    assert pause(invoke, taken_over).exit_code == (4 if hide == "rebalance" else 0), "it waits for the change"
