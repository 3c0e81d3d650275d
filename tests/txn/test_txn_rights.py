"""What txn and fence say when a principal may not see everything; brokers often say nothing at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from eosctl.app import App
from eosctl.core.clients.settings import ClientSettings, Secret
from eosctl.core.ids import TransactionalId
from eosctl.core.transaction_log import TOPIC
from eosctl.deadline import Deadline
from eosctl.errors import ExitCode, UnauthorizedError
from eosctl.fence.gather import FenceRequest
from eosctl.fence.plan import plan_fence
from eosctl.report import Report
from eosctl.target import Target
from eosctl.txn.list import ListFilter, find_coordinators, list_transactions
from eosctl.txn.partitions import find_hanging_transactions, list_producers
from tests.fakes.broker import FakeCluster
from tests.fakes.broker_state import FakeTransaction
from tests.fakes.clock import PLENTY_S

ALICE = {"sasl_mechanism": "PLAIN", "sasl_username": "alice", "sasl_password": Secret("secret")}


@dataclass
class Stage:
    cluster: FakeCluster

    @property
    def app(self) -> App:
        client = ClientSettings(self.cluster.bootstrap_servers, security_protocol="SASL_PLAINTEXT", **ALICE)  # type: ignore[arg-type]
        return App(Target(client=client), Deadline.after(PLENTY_S), Path("unused"))


@pytest.fixture
def stage() -> Iterator[Stage]:
    """alice, logged in, and one id, g-c-0, that has a transaction open on t-0."""
    with FakeCluster(users={"alice": "secret"}) as cluster:
        cluster.state.open_transaction("g-c-0", ("t", 0), epoch=1)
        cluster.state.add_topic(TOPIC, 50)
        yield Stage(cluster)


@pytest.mark.parametrize(
    "look",
    [
        lambda app: list_transactions(app, ListFilter()),
        lambda app: plan_fence(app, FenceRequest(prefix="g-")).report(app),
        lambda app: plan_fence(app, FenceRequest(pattern="g-.*")).report(app),
    ],
    ids=["list", "prefix", "match"],
)
def test_an_empty_listing_may_be_a_missing_right(stage: Stage, look: Callable[[App], Report]) -> None:
    """Brokers leave out the ids that one may not DESCRIBE; "nothing to fence" used to be all that was said."""
    seen = look(stage.app)
    assert len(seen.rows) == 1
    assert "ids_may_be_hidden" not in [problem.code for problem in seen.problems]

    stage.cluster.deny_describe.add("g-c-0")
    hidden = look(stage.app)
    assert (len(hidden.rows), hidden.exit_code) == (0, ExitCode.OK)
    (problem,) = [problem for problem in hidden.problems if problem.code == "ids_may_be_hidden"]
    assert problem.severity == "warning"
    assert "only those that alice may DESCRIBE" in problem.message
    assert "--allow-principal User:alice --operation Describe --transactional-id '*'" in str(problem.hint)


def test_without_a_login_an_empty_listing_is_empty() -> None:
    with FakeCluster() as cluster:
        cluster.state.transactions["g-c-0"] = FakeTransaction(1, 4)
        cluster.deny_describe.add("g-c-0")
        app = App(Target(client=ClientSettings(cluster.bootstrap_servers)), Deadline.after(PLENTY_S), Path("unused"))
        assert list_transactions(app, ListFilter()).problems == []


def test_a_coordinator_is_found_without_the_right_to_see_its_topic(stage: Stage) -> None:
    """The whole command used to fail when `__transaction_state` could not be described."""
    stage.cluster.deny_topics.add(TOPIC)
    report = find_coordinators(stage.app, [TransactionalId("g-c-0")])
    assert report.exit_code == ExitCode.OK
    assert (report.rows[0].coordinator, report.rows[0].partition) == (1, None)
    (problem,) = report.problems
    assert (problem.code, problem.severity) == ("not_authorized", "warning")
    assert f"--operation Describe --topic {TOPIC}" in str(problem.hint)


@pytest.mark.parametrize(
    "look", [lambda app: list_producers(app, "t", None), lambda app: find_hanging_transactions(app, "t")]
)
def test_a_topic_that_may_not_be_described_is_granted_by_one_line(stage: Stage, look: Callable[[App], Report]) -> None:
    """The hint used to say in prose that DESCRIBE is needed, and READ, needed next, only in a second failure."""
    stage.cluster.deny_topics.add("t")
    with pytest.raises(UnauthorizedError, match="describe topic t") as caught:
        look(stage.app)
    assert "--allow-principal User:alice --operation Describe --operation Read --topic t" in str(caught.value.hint)
