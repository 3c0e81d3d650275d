"""Every command that a finding of doctor prints, run as it is printed in the incident that it is for.

A table of incidents on the fake cluster; what is played on real brokers, or has a scene of its own, is named below it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from eosctl.connectors.look import known_failure, remedy
from eosctl.core.records import Record
from eosctl.failures.failure import Failure, Sign
from eosctl.failures.rules import FAILURES, Match
from eosctl.upgrade.gates import SUMMING_GATES
from tests.conftest import Invoke
from tests.fakes.acls import FakeAclStore
from tests.fakes.broker_state import FakeTransaction
from tests.fakes.config_topic import CONFIG_TOPIC, config_records, created
from tests.fakes.config_world import ConfigWorld, compacted
from tests.fakes.connectors import FILE_SOURCE
from tests.fakes.doctor_scene import (
    OFFSETS,
    W1,
    W2,
    cluster,
    doctor,
    row_of,
    run_fix,
    transaction_topic,
    write_worker_file,
)
from tests.fakes.world import STATUSES
from tests.source_trees import nodes_of

ROOT = Path(__file__).parents[2]
OWN = "own-orders"
RESTART = "eosctl connectors restart --failed orders"
DEFAULT = [compacted(CONFIG_TOPIC, 1), compacted(OFFSETS, 25), transaction_topic()]


@dataclass(frozen=True, slots=True)
class Remedy:
    """`printed` are the commands of the finding `code`, all of them, in their order.

    `heals`: doctor has the finding no more when they were run; else they show something, or `by_hand` heals.
    `worker_file`: who the workers' principals are has to be known.
    """

    code: str
    there: Callable[[], ConfigWorld]
    printed: tuple[str, ...]
    heals: bool = False
    by_hand: Callable[[ConfigWorld], object] | None = None
    until: str = "\0"
    worker_file: bool = False

    def __str__(self) -> str:
        return self.code


def died_of(trace: str) -> ConfigWorld:
    """The task of orders, which has an offsets topic of its own, has FAILED of it."""
    config = {"offsets.storage.topic": OWN, "connector.class": FILE_SOURCE}
    there = cluster(
        records=config_records(*created("orders", 1, record=1, config=config)), configs={"orders": config},
        described=[*DEFAULT, compacted(OWN, 25)], acls=FakeAclStore(),
    )  # fmt: skip
    there.connect.after("start_task", lambda _call: take_id(there))
    there.connect.connectors["orders"].fail(trace=trace)
    return there


def take_id(there: ConfigWorld) -> None:
    """A task that starts initialises its id."""
    there.brokers.state.transactions.setdefault("g-orders-0", FakeTransaction(5, 0)).producer_epoch += 1


def trace_of(sign: Sign) -> str:
    return "org.apache.kafka.X: " + " ".join(sign.texts)


TRACES = {
    trace: known
    for failure in FAILURES
    for trace in map(trace_of, failure.signs)
    if (known := known_failure(trace)) and known.failure is failure
}
"""All that a task of Connect may die of, and as what it is known."""
REMEDIES = {(known.failure, remedy(known)): trace for trace, known in reversed(TRACES.items())}
"""A trace for each failure and fix: by which of its words a failure is known changes nothing of what is printed."""


def of_failure(failure: Failure, fix: str, trace: str) -> Remedy:
    printed = tuple(re.findall(r"`(eosctl [^`]*)`", fix.replace("{c}", "orders").replace("{name}", "orders")))
    heals = any(line.startswith(("eosctl connectors restart", "eosctl rescue")) for line in printed)
    return Remedy(failure.code, lambda: died_of(trace), printed, heals, worker_file=True)


def test_the_words_of_a_failure_find_the_fix_that_stands_beside_them() -> None:
    """Words that others shadow, of the same failure, would print the fix of those."""
    shadowed = {
        sign.texts: remedy(known)
        for failure in FAILURES
        for sign in failure.signs
        if sign.pattern is None
        and (known := known_failure(trace_of(sign))) is not None
        and known.failure is failure
        and remedy(known) != remedy(Match(failure, sign, 0))
    }
    assert shadowed == {}


def unassigned(minutes: int) -> ConfigWorld:
    there = cluster(described=[*DEFAULT, compacted(STATUSES, 5)])
    there.connect.delayed.add(("orders", 0))
    there.connect.connectors["orders"].tasks[0].state = "UNASSIGNED"
    there.topics.read(STATUSES)
    newest_ms = max(record.timestamp_ms for record in there.topics.records(STATUSES))
    there.time.now_s = newest_ms / 1000 + minutes * 60
    return there


def open_on(topic: str, transactional_id: str | None) -> ConfigWorld:
    """Somebody's transaction is open there; without an id no coordinator knows it."""
    there = cluster()
    there.brokers.state.open_transaction("a job", (topic, 0))
    if transactional_id is None:
        del there.brokers.state.transactions["a job"]
    return there


def long_open() -> ConfigWorld:
    there = cluster()
    there.brokers.state.open_transaction("g-orders-0", ("orders", 0))
    there.time.now_s += 50
    return there


def too_few_recorded() -> ConfigWorld:
    there = cluster(records=config_records(*created("orders", 1, record=1)))
    there.brokers.state.transactions["g-orders-4"] = FakeTransaction(77, 1, "Ongoing", started_ms=1)
    return there


def behind_an_unreadable_record() -> ConfigWorld:
    there = cluster(
        modes={W1: "enabled", W2: "enabled"},
        records=config_records(*created("orders", 1, record=1), ("tasks-fencing-orders", {"tasks": 1})),
    )
    there.connect.reads_up_to[W2] = there.connect.config_offset - 1
    return there


def aborted_configs(mode: str) -> ConfigWorld:
    ghost = Record(CONFIG_TOPIC, 0, 9, -1, b"connector-ghost", b'{"properties":{}}')
    return cluster(aborted=[ghost], modes={W1: "enabled", W2: mode})


def aborted_offsets(mode: str) -> ConfigWorld:
    return cluster(
        aborted_offsets=[Record(OFFSETS, 0, 2, 0, b'["orders",{"f":1}]', b'{"n":2}')], modes={W1: "enabled", W2: mode}
    )


def at_rest() -> ConfigWorld:
    there = cluster()
    there.connect.add("parked one", {"connector.class": FILE_SOURCE}, state="PAUSED")
    return there


def own_topic_missing() -> ConfigWorld:
    config = {"offsets.storage.topic": OWN, "connector.class": FILE_SOURCE}
    there = cluster(
        records=config_records(*created("orders", 1, record=1, config=config)), configs={"orders": config},
        offsets=[Record(OFFSETS, 0, 1, 0, b'["orders",{"f":1}]', b'{"n":2}')],
    )  # fmt: skip
    there.connect.worker().set_state("orders", "stop")
    there.time.now_s += 1
    return there


def test_a_merge_that_would_create_nothing_is_not_printed(invoke: Invoke) -> None:
    """`offsets merge` of a connector without offsets writes nothing, and so makes no topic either."""
    there = own_topic_missing()
    there.topics.put(OFFSETS, b'["orders",{"f":1}]', None)
    row = row_of(invoke, there, "topic_missing")
    assert "offsets merge" not in row["fix"]


def failed_of_nothing_known() -> ConfigWorld:
    there = cluster()
    there.connect.connectors["orders"].fail()
    return there


PLAN_ENABLED, PLAN_DOWN = "eosctl upgrade plan --to enabled", "eosctl upgrade plan --to disabled --hard"
PREPARING_ONLY = {W1: "preparing"}
TABLE = (
    *(of_failure(*each, trace) for each, trace in REMEDIES.items() if "eosctl " in each[1]),
    Remedy("task_failed", failed_of_nothing_known, ("eosctl connectors trace -o json orders",)),
    Remedy("unassigned", lambda: unassigned(1), ("eosctl workers list",)),
    Remedy("unassigned", lambda: unassigned(60), ("eosctl workers list",)),
    Remedy(
        "no_open_transactions", lambda: open_on(CONFIG_TOPIC, "a job"),
        (f"eosctl txn producers --topic {CONFIG_TOPIC} --partition 0",),
    ),
    Remedy("open_transaction", lambda: open_on(OFFSETS, "a job"), ("eosctl fence 'a job'",), heals=True),
    Remedy(
        "open_transaction", lambda: open_on(OFFSETS, None),
        (f"eosctl txn abort --topic {OFFSETS} --partition 0 --start-offset 0",), heals=True,
    ),
    Remedy("transaction_open_long", long_open, ("eosctl txn describe g-orders-0",)),
    Remedy("no_aborted_records", lambda: aborted_configs("preparing"), ("eosctl task-counts replay --topic",)),
    Remedy("aborted_configs_unread", lambda: aborted_configs("enabled"), (PLAN_DOWN,)),
    Remedy("no_aborted_offsets", lambda: aborted_offsets("preparing"), (PLAN_DOWN,)),
    Remedy("aborted_offsets_unread", lambda: aborted_offsets("enabled"), (PLAN_DOWN,)),
    Remedy(
        "task_not_exactly_once", lambda: cluster(known_ids=()),
        ("eosctl workers probe", "eosctl connectors restart orders"), heals=True, by_hand=take_id,
    ),
    Remedy(
        "too_low", too_few_recorded,
        (
            "eosctl connectors stop orders", "eosctl fence --tasks 5 --connector orders",
            "eosctl connectors resume orders",
        ),
        heals=True,
    ),
    Remedy(
        "missing", lambda: cluster(records=config_records(*created("orders", 1))),
        ("eosctl connectors stop orders", "eosctl connectors resume orders"), heals=True,
    ),
    Remedy(
        "tombstoned",
        lambda: cluster(records=config_records(*created("orders", 1, record=1), ("tasks-fencing-orders", None))),
        ("eosctl connectors stop orders", "eosctl connectors resume orders"),
    ),
    Remedy(
        "implausible", lambda: cluster(records=config_records(*created("orders", 1, record=-1))),
        (
            "eosctl connectors stop orders", "eosctl fence --tasks 1 --connector orders",
            "eosctl task-counts write --no-fence --count 1 --connector orders",
            "eosctl connectors resume orders",
        ),
        heals=True,
    ),
    Remedy("worker_behind", behind_an_unreadable_record, ("eosctl task-counts clean",)),
    Remedy("kip_text_field", behind_an_unreadable_record, ("eosctl task-counts clean",), heals=True),
    Remedy("at_rest", at_rest, ("eosctl connectors resume 'parked one'",), heals=True),
    Remedy(
        "topic_missing", own_topic_missing, ("eosctl offsets merge --connector orders --into dedicated",), heals=True
    ),
    Remedy(
        "exactly_once_not_used",
        lambda: cluster(modes={W1: "disabled"}, records=config_records(*created("orders", 1))),
        (PLAN_ENABLED, "eosctl connectors check"),
    ),
    Remedy("enabled_before", lambda: cluster(modes={W1: "disabled"}), (PLAN_ENABLED,)),
)  # fmt: skip


@pytest.mark.parametrize("remedy", TABLE, ids=str)
def test_what_is_printed_is_what_heals_or_shows_it(invoke: Invoke, tmp_path: Path, remedy: Remedy) -> None:
    """`N`, NAME and FILE stood in commands, a request had to be sent by hand, and some were refused as printed."""
    there = remedy.there()
    more = ("-w", str(write_worker_file(tmp_path / "worker.properties"))) if remedy.worker_file else ()
    row = row_of(invoke, there, remedy.code)
    text = f"{row['message']} {row['fix']}".partition(remedy.until)[0]
    assert tuple(re.findall(r"`(eosctl [^`]*)`", text)) == remedy.printed
    if remedy.by_hand is not None:
        remedy.by_hand(there)
    run_fix(invoke, there, {"fix": text}, more=more)
    if remedy.heals:
        codes = {each["code"] for each in doctor(invoke, there, "-o", "json").json()["data"]["rows"]}
        assert remedy.code not in codes


ELSEWHERE = {
    "acl_missing": "gameday/test_rights_live.py",
    "clean_unfinished": "task_counts/test_task_count_clean.py",
    "data_topic_held": "gameday/test_topics_live.py",
    "hanging_transaction": "gameday/test_topics_live.py",
    "offsets_hidden": "checks/test_doctor_lost_offsets.py",
    "offsets_topic_empty": "gameday/test_offsets_live.py",
    "offsets_went_back": "gameday/test_offsets_live.py",
    "rescue_unfinished": "checks/test_unfinished.py",
    "several_partitions": "offsets/test_offset_files_live.py",
    "switch_begun_elsewhere": "checks/test_unfinished.py",
    "switch_unfinished": "gameday/test_connectors_live.py",
    "tasks_forgotten": "checks/test_doctor_topics.py",
    "upgrade_unfinished": "checks/test_unfinished.py",
    "wrong_partition": "offsets/test_offset_files_live.py",
    "wrong_type": "gameday/test_topics_live.py",
}
"""Where the commands of other findings are run: on real brokers, or on a scene that is made for them."""
NOT_DOCTORS = SUMMING_GATES | {"modes_proven", "mode_unproven", "no_transaction_sizes"}
"""What doctor says check by check and not as a sum, and what other commands say."""


def codes_with_commands() -> Iterator[str]:
    """Every code that stands in the source beside a command: of findings and gates."""
    for path in (ROOT / "eosctl").rglob("*.py"):
        for node in nodes_of(path):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("Finding", "_Rule"):
                code = node.args[0] if node.args else None
                if isinstance(code, ast.Constant) and "`eosctl " in ast.unparse(node):
                    yield str(code.value)


def test_every_finding_that_prints_a_command_is_in_the_table_or_has_a_test_elsewhere() -> None:
    run = {each.code for each in TABLE} | ELSEWHERE.keys()
    assert sorted(set(codes_with_commands()) - run - NOT_DOCTORS) == []
    assert [code for code, path in ELSEWHERE.items() if code not in (ROOT / "tests" / path).read_text("utf-8")] == []
