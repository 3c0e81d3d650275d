"""How often a command connects to the brokers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from eosctl.app import App
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.ids import TransactionalId
from eosctl.core.transactions import Coordinator, RawGroup
from eosctl.deadline import Clock, Deadline
from eosctl.errors import DeadlineError
from eosctl.fence.gather import FenceRequest
from eosctl.fence.plan import apply_fence, plan_fence
from eosctl.kafka.session import KafkaSession
from eosctl.kafka.transactions.admin import NativeTransactionAdmin
from eosctl.observation.transactions import find_rival_groups
from eosctl.target import Target
from eosctl.txn.list import describe_transactions
from eosctl.wire import error_codes as codes
from tests.command_lines import LINES, Line, count_connects, prepare, run_line
from tests.conftest import Invoke
from tests.fakes.broker import FakeCluster
from tests.fakes.broker_state import FakeTransaction
from tests.fakes.canaries import canary_world
from tests.fakes.clock import PLENTY_S, given_time
from tests.fakes.faults import EVERY, Call

SIDES = {"connectors move": 2}
"""Leaf -> how many profiles, each with a login of its own, lead it to the brokers."""


@pytest.mark.parametrize("line", LINES, ids=str)
def test_a_command_connects_once_to_each_broker_that_it_needs(invoke: Invoke, tmp_path: Path, line: Line) -> None:
    """`rescue` connected 29 times: with TLS and SCRAM each of them costs six round trips and a key derivation."""
    with canary_world(tmp_path) as world:
        prepare(invoke, world, line)
        assert max(count_connects(invoke, world, line).values(), default=0) <= SIDES.get(line.leaf, 1)


VIEWS = 2
"""What is aborted shows where both isolations are read."""
LOOKS = {
    "connectors check": VIEWS,
    "doctor": VIEWS + 1,  # the records are compared with the ids that are listed at the same moment
    "upgrade plan": VIEWS,
    "upgrade status": VIEWS,
    "upgrade verify": VIEWS,
    "upgrade apply": 3 * VIEWS,  # again before the first restart, and after each pass
    "task-counts replay": VIEWS,
    "acls apply": 2,  # again before the write
    "fence": 2,  # again before the first id
    "connectors create": 3,  # again before the first step, and when it is there
    "connectors apply": 2,  # again for its offsets
    "offsets switch": 4,  # again before the first step, before the stop where it is STOPPED, and after it
    "connectors move": 5,  # again before the steps, before and after the stop, and before the start
    "task-counts write": 5,  # again before the steps, before fencing and before the write; read back
    "rescue": 5,
}
"""Leaf -> how often it reads the config topic as a whole: once for its plan, and again where something hangs on it."""
LEADERS_KEY = "fence --connector orders --via connect --yes"
WAITING = "task-counts clean"
ROOTS = {
    "offsets switch": 3,  # again before the steps, and after ten seconds of waiting for a worker
    "connectors create": 2,
    "connectors move": 3,
    "upgrade apply": 8,  # a worker that is restarted is another version
}
"""Leaf -> how often it asks for a worker's version and cluster; none of the others does it more than once."""


@pytest.mark.parametrize("line", [line for line in LINES if line.leaf != WAITING], ids=str)
def test_a_command_reads_the_config_topic_once_and_again_before_a_write(
    invoke: Invoke, tmp_path: Path, line: Line
) -> None:
    """`doctor`, `rescue` and `task-counts write` read it six times; what waits for the cleaner reads until it came."""
    with canary_world(tmp_path) as world:
        prepare(invoke, world, line)
        reads: list[Call] = []
        world.topics.before("read", lambda call: reads.append(call) if call.what[0] == "connect-configs" else None)
        run_line(invoke, world, line, output="text")
        assert len(reads) <= LOOKS.get(line.leaf, 1) + (line.text == LEADERS_KEY)


@pytest.mark.parametrize("line", LINES, ids=str)
def test_a_worker_that_is_asked_is_asked_for_its_version_and_cluster_once(
    invoke: Invoke, tmp_path: Path, line: Line
) -> None:
    """Each look at the connector asked for them anew, and so did each round of waiting for it; `rescue` 7 times."""
    with canary_world(tmp_path) as world:
        prepare(invoke, world, line)
        asked: list[str] = []
        world.connect.before(EVERY, lambda call: asked.append(call.method))
        run_line(invoke, world, line, output="text")
        assert asked.count("root") <= ROOTS.get(line.leaf, 1)
        assert "root" in asked or not asked, "what a worker says counts for the cluster that it is of"


@pytest.fixture
def asked() -> Iterator[Asked]:
    with FakeCluster(brokers=1) as cluster:
        session = KafkaSession()
        yield Asked(cluster, session)
        session.close()


class Asked:
    """One session to a broker that knows an id, and a deadline for each question."""

    def __init__(self, cluster: FakeCluster, session: KafkaSession) -> None:
        self.cluster, self.session = cluster, session
        self.settings = ClientSettings(cluster.bootstrap_servers, request_timeout_ms=10**9)  # only deadlines end waits

    def admin(self, timeout_s: float = PLENTY_S) -> NativeTransactionAdmin:
        deadline = Deadline.after(timeout_s, Clock())
        return NativeTransactionAdmin(self.settings, deadline=deadline, connections=self.session.to(self.settings))

    def apis(self) -> list[str]:
        """What was asked, but for the metadata that came along."""
        return [seen.api for seen in self.cluster.seen if seen.api != "Metadata"]

    def fence(self, known: Mapping[TransactionalId, Coordinator]) -> int:
        with self.admin() as admin:
            [answer] = admin.fence(list(known), transaction_timeout_ms=1000, coordinators=known)
        assert answer.fault is None
        return answer.attempts


def test_connections_that_brokers_ended_meanwhile_are_not_used(asked: Asked) -> None:
    """A fence over an idle connection that had ended would have been "unconfirmed", though it was never sent."""
    wanted = TransactionalId("g-orders-0")
    with asked.admin() as admin:
        coordinator = admin.find_coordinators([wanted])[wanted]
    assert isinstance(coordinator, Coordinator)
    asked.cluster.drop_connections()
    time.sleep(0.05)
    assert asked.fence({wanted: coordinator}) == 1
    assert asked.cluster.accepted.total() == 2


def test_a_fence_waits_for_no_answer_that_could_have_come_with_another(asked: Asked, tmp_path: Path) -> None:
    """It waited 14 times: for metadata alone, and for the coordinator of a group that had just answered."""
    asked.cluster.state.transactions["a-bench-0"] = FakeTransaction(1, 4)
    app = App(Target(asked.settings), Deadline.after(PLENTY_S, Clock()), tmp_path, kafka=asked.session)
    plan = plan_fence(app, FenceRequest((TransactionalId("a-bench-0"),)))
    looks = ["FindCoordinator", "DescribeTransactions", "ListGroups", "FindCoordinator", "DescribeGroups"]
    assert asked.apis() == ["ApiVersions", *looks]
    assert asked.cluster.rounds.total() == 6
    asked.cluster.seen.clear()
    apply_fence(app, plan)
    assert asked.apis() == ["ListGroups", "DescribeGroups", "InitProducerId"], "the guard looks again"
    assert asked.cluster.rounds.total() == 9


def test_a_description_waits_for_no_metadata_alone(asked: Asked, tmp_path: Path) -> None:
    asked.cluster.state.transactions["a-bench-0"] = FakeTransaction(1, 4)
    app = App(Target(asked.settings), Deadline.after(PLENTY_S, Clock()), tmp_path, kafka=asked.session)
    report = describe_transactions(app, [TransactionalId("a-bench-0")])
    assert report.target["kafka_cluster_id"] == asked.cluster.state.cluster_id
    assert asked.apis() == ["ApiVersions", "FindCoordinator", "DescribeTransactions"]
    assert asked.cluster.rounds.total() == 3


def test_groups_that_may_have_the_ids_of_a_task_are_asked_for_together(asked: Asked) -> None:
    """Each took two round trips of its own, and a connector whose name has five dashes has as many groups."""
    ids = [TransactionalId("a-b-c-d-0")]
    asked.cluster.state.groups["a"] = RawGroup("a", "Stable", "connect", "", ())
    asked.cluster.deny_groups.add("a-b-c")
    with asked.admin() as admin:
        found, hidden = find_rival_groups(admin, "a-b", ids)
    assert (list(found), len(hidden)) == (["a"], 1)
    assert asked.apis() == ["ApiVersions", "FindCoordinator", "DescribeGroups"]


def test_every_broker_is_asked_at_once_with_the_metadata_that_names_the_others(asked: Asked) -> None:
    with asked.admin() as admin:
        assert (admin.silent_brokers(patience_s=5), list(admin.features().known)) == ({}, [1])
        assert list(admin.log_dirs(patience_s=5)) == [1]
    assert asked.apis() == [*["ApiVersions"] * 3, "DescribeLogDirs"]
    assert asked.cluster.rounds.total() == 4


def test_a_group_whose_coordinator_has_moved_is_found(asked: Asked) -> None:
    asked.cluster.state.groups["g"] = RawGroup("g", "Empty", "connect", "", ())
    with asked.admin() as admin:
        assert [admin.describe_group("g").state for _ in range(2)] == ["Empty"] * 2
        assert asked.apis() == ["ApiVersions", "FindCoordinator", "DescribeGroups", "DescribeGroups"]
        asked.cluster.seen.clear()
        asked.cluster.fail_next("DescribeGroups", codes.NOT_COORDINATOR)
        assert admin.describe_group("g").state == "Empty"
    assert asked.apis() == ["DescribeGroups", "FindCoordinator", "DescribeGroups"]


def _know_a_group_that_moves(asked: Asked) -> int:
    """Describe a group, then move it away from its coordinator, which listens on; return that one's node."""
    state = asked.cluster.state
    state.groups["g"] = RawGroup("g", "Empty", "connect", "", ())
    with asked.admin() as admin:
        admin.describe_group("g")
    before = state.coordinator("g")
    assert before is not None
    state.nodes.remove(before)
    asked.cluster.seen.clear()
    return before


def test_a_group_is_found_that_moved_from_a_broker_which_freezes() -> None:
    """The coordinator that was kept had all of the time that there was, and none was left for the new one."""

    def describe(timeout_s: float) -> None:
        with FakeCluster(brokers=2) as cluster, closing(KafkaSession()) as session:
            asked = Asked(cluster, session)
            cluster.frozen.add(_know_a_group_that_moves(asked))
            with asked.admin(timeout_s=timeout_s) as admin:
                assert admin.describe_group("g").state == "Empty"

    given_time(describe, first_s=2)


def test_a_broker_that_metadata_names_no_more_is_not_asked_about_groups() -> None:
    """One that is cut off from the others may say of a group what is no longer so."""
    with FakeCluster(brokers=2) as cluster, closing(KafkaSession()) as session:
        asked = Asked(cluster, session)
        before = _know_a_group_that_moves(asked)
        with asked.admin() as admin:
            admin.list_groups()
            admin.describe_group("g")
        [described] = [seen.node for seen in cluster.seen if seen.api == "DescribeGroups"]
        assert described != before


@pytest.mark.parametrize(
    ("host", "first", "asked"), [("127.0.0.1", 1, [1, 2]), ("127.0.0.1", 2, [2, 1]), ("localhost", 2, [2, 1, 2])]
)
def test_groups_of_every_broker_are_listed_whichever_is_asked_first(host: str, first: int, asked: list[int]) -> None:
    """What came with the metadata is of the broker that was asked; under another name it is not known which that is."""
    with FakeCluster(brokers=2) as cluster:
        for node in (1, 2):
            cluster.state.groups[f"g{node}"] = RawGroup(f"g{node}", "Empty", "connect", "", ())
            cluster.state.moved[f"g{node}"] = node
        settings = ClientSettings((f"{host}:{cluster.address(first)[1]}",))
        with NativeTransactionAdmin(settings, deadline=Deadline.after(PLENTY_S, Clock())) as admin:
            assert admin.list_groups() == {"g1": "connect", "g2": "connect"}
        assert [seen.node for seen in cluster.seen if seen.api == "ListGroups"] == asked


def test_each_question_has_its_own_deadline(asked: Asked) -> None:
    with asked.admin() as admin, asked.admin(timeout_s=0.01) as late:
        assert admin.cluster_id()
        time.sleep(0.02)
        with pytest.raises(DeadlineError):
            late.list_groups()
        assert admin.list_groups() is not None


def test_a_users_end_leaves_others_their_connections(asked: Asked) -> None:
    with asked.admin() as first:
        first.cluster_id()
        with asked.admin() as second:
            second.cluster_id()
        assert first.list_groups() is not None
    assert asked.cluster.accepted.total() == 1
