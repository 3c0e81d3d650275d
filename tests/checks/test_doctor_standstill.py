"""What `eosctl doctor` says of connectors and tasks that do nothing: unassigned, paused, RUNNING without a commit."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, cast

import pytest
from msgspec.structs import replace

from eosctl.checks.standstill import LEAST_LONG_MS, long_transactions
from eosctl.core.ids import TransactionalId
from eosctl.errors import ConnectError, EosctlError, NotFoundError, UnauthorizedError, UnsupportedError
from eosctl.group.observation.rules import OngoingTransaction, OwnCluster
from tests.conftest import Invoke
from tests.fakes.config_topic import CONFIG_TOPIC, config_records, created
from tests.fakes.config_world import ConfigWorld, compacted
from tests.fakes.doctor_scene import (
    HEALTHY,
    OFFSETS,
    W1,
    W2,
    cluster,
    doctor,
    found,
    later,
    row_of,
    run_fix,
    transaction_topic,
)
from tests.fakes.faults import Call
from tests.fakes.world import STATUSES
from tests.group.observations import good


def without_worker(there: ConfigWorld) -> None:
    """The task waits for a worker that is lost."""
    there.connect.delayed.add(("orders", 0))
    there.connect.connectors["orders"].tasks[0].state = "UNASSIGNED"


@pytest.mark.parametrize(("minutes", "severity"), [(5, "warning"), (7, "error")])
def test_a_task_that_has_no_worker_for_longer_than_a_rebalance_is_an_error(
    invoke: Invoke, minutes: int, severity: str
) -> None:
    """It was a warning to look again, also after hours."""
    topics = [compacted(CONFIG_TOPIC, 1), compacted(OFFSETS, 25), compacted(STATUSES, 5), transaction_topic()]
    there = cluster(described=topics)
    without_worker(there)
    there.topics.read(STATUSES)  # which has it from now on
    later(there, minutes * 60)
    row = row_of(invoke, there, "unassigned")
    assert (row["subject"], row["severity"]) == ("orders/0", severity)
    assert row["evidence"]["unassigned_ms"] == pytest.approx(minutes * 60_000, abs=3000)
    assert ("longer than a rebalance takes" in row["message"]) == (severity == "error")


def test_without_the_status_topic_it_stays_a_warning(invoke: Invoke) -> None:
    there = cluster()
    without_worker(there)
    later(there, 3600)
    assert row_of(invoke, there, "unassigned")["severity"] == "warning"


def test_the_default_status_topic_is_not_asked_of_a_group_that_may_have_another(invoke: Invoke) -> None:
    """Another group's task of the same name was UNASSIGNED there for an hour."""
    topics = [compacted("other-configs", 1), compacted(OFFSETS, 25), compacted(STATUSES, 5), transaction_topic()]
    there = cluster(described=topics, records=())
    without_worker(there)
    there.topics.read(STATUSES)
    later(there, 3600)
    rows = doctor(invoke, there, "--config-topic", "other-configs", "-o", "json").json()["data"]["rows"]
    assert [row["severity"] for row in rows if row["code"] == "unassigned"] == ["warning"]


def test_connectors_at_rest_are_said_and_no_error(invoke: Invoke) -> None:
    """That a connector was paused and forgotten was not to be seen."""
    there = cluster()
    there.connect.add("parked", {}, state="STOPPED")
    there.connect.add("my 1", {}, state="PAUSED")
    rows = found(invoke, there, 0)
    assert [row for row in rows if row[1] == "at_rest"] == [("connectors", "at_rest", "info")] * 2
    told = [row for row in doctor(invoke, there, "-o", "json").json()["data"]["rows"] if row["code"] == "at_rest"]
    assert [row["subject"] for row in told] == ["my 1", "parked"]
    assert "`eosctl connectors resume 'my 1'`" in told[0]["fix"]


def test_a_connector_of_a_group_that_is_not_enabled_and_commits_no_offset_is_told(invoke: Invoke) -> None:
    """Where there are no transactions nothing was said of it."""
    there = cluster(modes={W1: "disabled"}, records=config_records(*created("orders", 1)))
    there.topics.put(OFFSETS, b'["orders",{"f":1}]', b'{"n":1}')
    assert "nothing_committed" not in {code for _check, code, _severity in found(invoke, there, 0)}
    later(there, 600)
    row = row_of(invoke, there, "nothing_committed")
    assert (row["subject"], row["severity"]) == ("orders", "info")
    assert "no offset was committed for 10 m" in row["message"]


def test_a_worker_whose_tasks_commit_nothing_is_one_row(invoke: Invoke) -> None:
    """A warning per task, and none said that all of them were on one worker."""
    tasks = 4
    there = cluster(
        modes={W1: "enabled", W2: "enabled"}, records=config_records(*created("orders", tasks, record=tasks)),
        configs={"orders": {"tasks.max": str(tasks)}}, known_ids=[f"g-orders-{task}" for task in range(tasks)],
    )  # fmt: skip
    later(there, 600)
    now_ms = there.clock().now_ms()
    for number, task in there.connect.connectors["orders"].tasks.items():
        known = there.brokers.state.transactions[f"g-orders-{number}"]
        known.state = "CompleteCommit"
        known.started_ms = now_ms - (600_000 if task.url == W2 else 1000)
    rows = found(invoke, there, 0)
    assert [row for row in rows if row[1] != HEALTHY[0][1]] == [("connectors", "worker_commits_nothing", "warning")]
    assert row_of(invoke, there, "worker_commits_nothing")["subject"] == "w2:8083"


DATA, HOLDER = "orders topic", "billing's job"


def held(*partitions: tuple[str, int], timeout_ms: int = 60_000, open_s: float = 50, **changes: Any) -> ConfigWorld:
    """The healthy cluster, whose connector has written to DATA; somebody's transaction has been open for a while."""
    there = cluster(**changes)
    there.connect.connectors["orders"].topics.add(DATA)
    there.topics.add_topic(DATA, 3, {})
    there.topics.add_topic("another's", 1, {})
    there.brokers.state.open_transaction(HOLDER, *partitions)
    there.brokers.state.transactions[HOLDER].timeout_ms = timeout_ms
    there.time.now_s += open_s
    return there


def codes(invoke: Invoke, there: ConfigWorld) -> set[str]:
    document = doctor(invoke, there, "-o", "json").json()
    return {row["code"] for row in document["data"]["rows"]}


def test_a_transaction_of_anybodys_that_holds_a_topic_of_the_connectors_is_named_and_ended(invoke: Invoke) -> None:
    """Consumers got nothing more, `txn list` knew who it was, and doctor said that all is well."""
    there = held((DATA, 0), (DATA, 2), ("another's", 0))
    row = row_of(invoke, there, "data_topic_held")
    known = there.brokers.state.transactions[HOLDER]
    assert (row["check"], row["severity"], row["subject"]) == ("transactions", "error", HOLDER)
    assert row["message"] == (
        f"{HOLDER} (producer {known.producer_id}) has had a transaction open for 50 s (Ongoing): it keeps the last "
        f"stable offset of {DATA}-0 at 0, {DATA}-2 at 0, where orders writes; consumers with read_committed wait there"
    )
    assert row["evidence"]["started_ms"] == known.started_ms
    assert [(each["topic"], each["partition"]) for each in row["evidence"]["partitions"]] == [(DATA, 0), (DATA, 2)]
    described, fenced = run_fix(invoke, there, row)
    assert "Ongoing" in described.stdout
    assert "fenced" in fenced.stdout
    assert "data_topic_held" not in codes(invoke, there)


def test_two_minutes_are_long_whatever_the_timeout(invoke: Invoke) -> None:
    assert "data_topic_held" in codes(invoke, held((DATA, 0), timeout_ms=900_000, open_s=121))


@pytest.mark.parametrize("config", [{"topic.prefix": "ord"}, {"topic.prefix": "ord", "transforms": "route"}])
def test_topics_are_also_known_by_what_configs_say(invoke: Invoke, config: dict[str, str]) -> None:
    there = held((DATA, 0), configs={"orders": config})
    there.connect.connectors["orders"].topics.clear()
    row = row_of(invoke, there, "data_topic_held")
    assert row["evidence"]["connectors"] == ["orders"]
    assert (row["severity"], "where orders may write;" in row["message"]) == ("warning", True), "it was an error"


FLINKS = "shop totals-0-17"


@pytest.mark.parametrize(("open_s", "is_long"), [(400, False), (460, True)])
def test_one_of_flinks_has_half_of_its_timeout_and_is_for_its_job_to_end(
    invoke: Invoke, open_s: float, is_long: bool
) -> None:
    """Every checkpoint of a few minutes was an error, and fencing, which the fix named, is refused."""
    there = held((DATA, 0), timeout_ms=900_000, open_s=open_s)
    state = there.brokers.state
    state.transactions[FLINKS] = state.transactions.pop(HOLDER)
    assert ("data_topic_held" in codes(invoke, there)) is is_long
    if is_long:
        fix = row_of(invoke, there, "data_topic_held")["fix"]
        assert "let its job end it" in fix
        assert "eosctl fence" not in fix


@pytest.mark.parametrize("error", [UnauthorizedError("DESCRIBE is denied"), NotFoundError("it is gone")])
def test_a_topic_that_cannot_be_asked_hides_no_other(invoke: Invoke, error: EosctlError) -> None:
    """One bad topic lost every finding about a held one."""
    there = held((DATA, 0), ("bad", 0))
    there.connect.connectors["orders"].topics.add("bad")

    def refuse(call: Call) -> None:
        if "bad" in cast("Collection[str]", call.what[0]):
            raise error

    there.topics.before("known_bounds_of", refuse)
    rows = doctor(invoke, there, "-o", "json").json()["data"]["rows"]
    told = [(row["code"], row["subject"]) for row in rows if row["check"] == "transactions"]
    assert ("data_topic_held", HOLDER) in told
    assert error.message in [row["message"] for row in rows]


def test_many_topics_of_one_transaction_are_asked_for_at_once(invoke: Invoke) -> None:
    """Each took requests of its own, and a transaction on thousands used up the time of the checks that follow."""
    names, asked = [f"many-{number}" for number in range(20)], list[Call]()
    there = held(*((name, 0) for name in names))
    there.connect.connectors["orders"].topics.update(names)
    there.topics.before("known_bounds_of", asked.append)
    assert "and of 17 more" in row_of(invoke, there, "data_topic_held")["message"]
    assert len(asked) == 1


def test_an_id_that_its_coordinator_does_not_describe_is_said(invoke: Invoke) -> None:
    """It was dropped in silence."""
    there = held((DATA, 0))

    def deny(call: Call) -> None:
        if LEAST_LONG_MS in call.what:
            there.brokers.deny_describe.add(HOLDER)

    there.brokers.calls.after("list_transactions", deny)
    messages = {row["message"] for row in doctor(invoke, there, "-o", "json").json()["data"]["rows"]}
    assert [each for each in messages if each.startswith(f"could not describe {HOLDER}: TRANSACTIONAL_ID_AUTH")]


def test_a_connector_whose_topics_nobody_tells_is_said_beside_a_long_transaction(invoke: Invoke) -> None:
    """It was not judged, and nobody said so."""
    there = held((DATA, 0), configs={"orders": {}})
    there.connect.fail_always("topics", ConnectError("403: topic tracking is off"))
    told = [
        row
        for row in doctor(invoke, there, "-o", "json").json()["data"]["rows"]
        if (row["check"], row["code"]) == ("transactions", "output_topics_unknown")
    ]
    assert [row["message"].partition(":")[0] for row in told] == [
        f"whether the transaction of {HOLDER} holds up orders is not known"
    ]


def test_a_running_task_is_never_somebody_elses_transaction(invoke: Invoke) -> None:
    """A task whose transaction began after the first look was told as a stranger."""
    there = held((DATA, 0))
    known = there.brokers.state.transactions

    def begin(call: Call) -> None:
        if LEAST_LONG_MS in call.what and HOLDER in known:
            known["g-orders-0"] = known.pop(HOLDER)

    there.brokers.calls.before("list_transactions", begin)
    assert "data_topic_held" not in codes(invoke, there)
    assert HOLDER not in known


@pytest.mark.parametrize(
    "there",
    [
        pytest.param(lambda: held(("another's", 0)), id="on nobody's topic"),
        pytest.param(lambda: held((DATA, 0), open_s=29), id="for less than half of the timeout"),
        pytest.param(lambda: held((DATA, 0), timeout_ms=200_000, open_s=95), id="for less than half of a long one"),
        pytest.param(lambda: held((DATA, 0), timeout_ms=2_000, open_s=29), id="about to be aborted"),
        pytest.param(lambda: held((OFFSETS, 3), open_s=100), id="on the offsets topic, which has a finding of its own"),
    ],
)
def test_what_holds_nobody_of_the_group_up_is_none(invoke: Invoke, there: Callable[[], ConfigWorld]) -> None:
    assert "data_topic_held" not in codes(invoke, there())


def test_a_partition_without_a_record_of_it_is_not_held(invoke: Invoke) -> None:
    there = held((DATA, 0))
    there.brokers.state.transactions[HOLDER].partitions.add((DATA, 1))
    places = row_of(invoke, there, "data_topic_held")["evidence"]["partitions"]
    assert [each["partition"] for each in places] == [0]


def test_brokers_before_38_know_no_duration_and_are_asked_for_open_ones(invoke: Invoke) -> None:
    there = held((DATA, 0))
    there.brokers.versions["ListTransactions"] = (0, 0)
    assert row_of(invoke, there, "data_topic_held")["subject"] == HOLDER


def test_no_connector_is_asked_for_its_topics_while_no_transaction_is_open_for_long(invoke: Invoke) -> None:
    """With 500 connectors that would be 500 requests at each look."""
    asked: list[Call] = []
    there = held((DATA, 0), open_s=20)
    there.connect.before("topics", asked.append)
    assert "data_topic_held" not in codes(invoke, there)
    for_the_rights = len(asked)
    there.time.now_s += 60
    assert "data_topic_held" in codes(invoke, there)
    assert len(asked) == 2 * for_the_rights + 1


def test_brokers_that_list_no_transactions_hide_no_hanging_one(invoke: Invoke) -> None:
    """Before Kafka 3.0; what partitions tell is told all the same."""
    there = held((DATA, 0))
    there.brokers.calls.fail_always("list_transactions", UnsupportedError("ListTransactions needs Kafka 3.0"))
    document = doctor(invoke, there, "-o", "json").json()
    [check] = [each for each in document["data"]["checks"] if each["check"] == "transactions"]
    assert check["status"] != "not_checked"
    told = {row["message"] for row in document["data"]["rows"] if row["check"] == "transactions"}
    assert told == {"ListTransactions needs Kafka 3.0"}


def test_a_task_that_is_told_as_such_is_told_once(invoke: Invoke) -> None:
    there = held((DATA, 0))
    state = there.brokers.state
    state.transactions["g-orders-0"] = state.transactions.pop(HOLDER)
    assert codes(invoke, there) & {"data_topic_held", "transaction_open_long"} == {"transaction_open_long"}


@pytest.mark.parametrize(
    ("state", "open_ms", "own_cluster", "is_told"),
    [
        ("Ongoing", 50_000, False, True),
        ("Ongoing", 500_000, False, False),  # `find_unended` tells it
        ("PrepareCommit", 50_000, False, False),
        ("Ongoing", 500_000, True, True),  # where nobody else looks
        ("PrepareCommit", 50_000, True, True),
    ],
)
def test_one_that_no_coordinator_ends_is_told_on_a_cluster_of_the_connectors_own_too(
    state: str, open_ms: int, own_cluster: bool, is_told: bool
) -> None:
    ongoing = {TransactionalId("g-c-0"): OngoingTransaction(state, open_ms, 60_000)}
    own = {"c": OwnCluster("own:9092")} if own_cluster else {}
    seen = replace(good(), ongoing=ongoing, own_clusters=own)
    assert [str(each.code) for each in long_transactions(seen)] == (["transaction_open_long"] if is_told else [])
