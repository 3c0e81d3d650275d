"""The order of an upgrade for every mix of modes, and every gate with what makes it pass, fail and unknown."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from eosctl.core.open_transactions import OpenTransaction
from eosctl.core.records import Bounds
from eosctl.core.workers.modes import (
    POSSIBLE,
    TARGETS,
    Mode,
    UpgradeWorker,
    blocking_modes,
    downgrade_losses,
    plan_passes,
)
from eosctl.group.observation.rules import RightsSeen, WorkerFile
from eosctl.upgrade.gates import GATE_IDS, evaluate_gates
from tests.group.observations import (
    CURE,
    ENABLED,
    FLUSHED,
    INTERVAL,
    TWO_WORKERS,
    aborted,
    broken_set,
    good,
    source,
    topic,
    worker,
)

MIXES = [mix for size in (1, 2, 3) for mix in itertools.combinations_with_replacement(Mode, size)]
PREPARED = {Mode.PREPARING, Mode.ENABLED}


def group(modes: Sequence[Mode], leader: int = 0) -> list[UpgradeWorker]:
    return [UpgradeWorker(f"http://w{at}:8083", mode, leader=at == leader) for at, mode in enumerate(modes)]


@pytest.mark.parametrize("target", TARGETS)
def test_every_mix_ends_at_the_target_and_never_breaks_the_order(target: Mode) -> None:
    for modes in MIXES:
        workers = group(modes)
        running = {worker.name: set(POSSIBLE[worker.mode]) for worker in workers if worker.mode is not Mode.ABSENT}
        final = {worker.name: set(POSSIBLE[worker.mode]) for worker in workers}
        for each in plan_passes(workers, target):
            for step in each.steps:
                others = [possible for name, possible in running.items() if name != step.worker]
                if each.mode is Mode.ENABLED:
                    assert all(possible <= PREPARED for possible in others), (modes, step)
                if each.mode is Mode.DISABLED:
                    assert not any(Mode.ENABLED in possible for possible in others), (modes, step)
                final[step.worker] = {each.mode}
                if step.worker in running:
                    running[step.worker] = {each.mode}
        assert all(possible == {target} for possible in final.values()), modes


@pytest.mark.parametrize("target", TARGETS)
def test_a_worker_that_is_there_has_no_step_and_nobody_has_two_in_a_pass(target: Mode) -> None:
    for modes in MIXES:
        workers = group(modes)
        passes = plan_passes(workers, target)
        stepped = [step.worker for each in passes for step in each.steps]
        assert not {worker.name for worker in workers if POSSIBLE[worker.mode] == {target}} & set(stepped)
        assert all(len({step.worker for step in each.steps}) == len(each.steps) > 0 for each in passes)
        assert len(passes) <= 2


@pytest.mark.parametrize("leader", [0, 1, 2])
def test_the_leader_goes_last_in_each_pass(leader: int) -> None:
    for target in (Mode.ENABLED, Mode.PREPARING):
        for each in plan_passes(group([Mode.DISABLED] * 3, leader), target):
            assert each.steps[-1].worker == f"http://w{leader}:8083"


@pytest.mark.parametrize(
    ("modes", "target", "passes"),
    [
        ((Mode.DISABLED, Mode.DISABLED), Mode.ENABLED, [("preparing", 2), ("enabled", 2)]),
        ((Mode.DISABLED, Mode.PREPARING), Mode.ENABLED, [("preparing", 1), ("enabled", 2)]),
        ((Mode.PREPARING, Mode.PREPARING), Mode.ENABLED, [("enabled", 2)]),
        ((Mode.ENABLED, Mode.DISABLED), Mode.ENABLED, [("preparing", 1), ("enabled", 1)]),
        ((Mode.ENABLED, Mode.ENABLED), Mode.ENABLED, []),
        ((Mode.NOT_ENABLED, Mode.NOT_ENABLED), Mode.ENABLED, [("preparing", 2), ("enabled", 2)]),
        ((Mode.UNKNOWN, Mode.ENABLED), Mode.ENABLED, [("preparing", 1), ("enabled", 1)]),
        ((Mode.OLD_VERSION,), Mode.ENABLED, [("preparing", 1), ("enabled", 1)]),
        ((Mode.ENABLED, Mode.ENABLED), Mode.DISABLED, [("preparing", 2), ("disabled", 2)]),
        ((Mode.PREPARING, Mode.PREPARING), Mode.DISABLED, [("disabled", 2)]),
        ((Mode.OLD_VERSION, Mode.DISABLED), Mode.DISABLED, []),
        ((Mode.ENABLED, Mode.ABSENT), Mode.DISABLED, [("preparing", 1), ("disabled", 2)]),
        ((Mode.ABSENT,), Mode.DISABLED, [("disabled", 1)]),
        ((Mode.ABSENT,), Mode.ENABLED, [("preparing", 1), ("enabled", 1)]),
        ((Mode.ENABLED, Mode.DISABLED), Mode.PREPARING, [("preparing", 2)]),
        ((), Mode.ENABLED, []),
    ],
)
def test_passes(modes: tuple[Mode, ...], target: Mode, passes: list[tuple[str, int]]) -> None:
    assert [(each.mode.value, len(each.steps)) for each in plan_passes(group(modes), target)] == passes


INSTALL = "install Kafka Connect 3.3 or newer"
FIND_OUT = "find out which mode it runs in: nothing may be assumed of it"
FOLLOW = "check that it still leads the group; if not, restart the one that does last"
START, RESTART = "start it, when it is wanted", "restart it"


def setting(mode: str, unless: str = "") -> str:
    return f"set exactly.once.source.support={mode}{unless}"


@pytest.mark.parametrize(
    ("mode", "target", "actions"),
    [
        (Mode.DISABLED, Mode.PREPARING, (setting("preparing"), RESTART)),
        (Mode.OLD_VERSION, Mode.PREPARING, (INSTALL, setting("preparing"), RESTART)),
        (Mode.UNKNOWN, Mode.PREPARING, (FIND_OUT, setting("preparing"), RESTART)),
        (Mode.UNREACHABLE, Mode.PREPARING, (FIND_OUT, setting("preparing"), RESTART)),
        (Mode.NOT_ENABLED, Mode.PREPARING, (setting("preparing", " (unless it already runs with it)"), RESTART)),
        (Mode.NOT_ENABLED, Mode.DISABLED, (setting("disabled", " (unless it already runs with it)"), RESTART)),
        (Mode.ABSENT, Mode.PREPARING, (setting("preparing"), START)),
        (Mode.ENABLED, Mode.PREPARING, (setting("preparing"), RESTART)),
    ],
)
def test_steps_say_what_the_mode_asks_for(mode: Mode, target: Mode, actions: tuple[str, ...]) -> None:
    *_before, last = plan_passes(group([mode], leader=9), target)
    assert [step.actions for step in last.steps] == [actions]


def test_the_leaders_step_asks_whether_it_still_leads() -> None:
    [only] = plan_passes(group([Mode.PREPARING]), Mode.ENABLED)
    assert only.steps[0].actions == (FOLLOW, setting("enabled"), RESTART)


@pytest.mark.parametrize("mode", [mode for mode in Mode if mode is not Mode.PREPARING])
def test_a_worker_that_is_not_there_is_waited_for_by_nobody(mode: Mode) -> None:
    [only] = plan_passes(group([mode]), Mode.PREPARING)
    gates = ("worker_healthy", "members_known", "group_stable", "connectors_healthy", "mode_proven")
    assert only.steps[0].gates == (() if mode is Mode.ABSENT else gates)


@pytest.mark.parametrize(
    ("modes", "target", "sentences"),
    [
        ((Mode.DISABLED,), Mode.ENABLED, 0),
        ((Mode.ENABLED,), Mode.ENABLED, 0),
        ((Mode.DISABLED, Mode.PREPARING), Mode.PREPARING, 0),
        ((Mode.ENABLED,), Mode.PREPARING, 3),
        ((Mode.ENABLED,), Mode.DISABLED, 5),
        ((Mode.UNKNOWN,), Mode.DISABLED, 5),
        ((Mode.PREPARING,), Mode.DISABLED, 2),
        ((Mode.DISABLED,), Mode.DISABLED, 0),
    ],
)
def test_going_back_says_what_is_lost(modes: tuple[Mode, ...], target: Mode, sentences: int) -> None:
    assert len(downgrade_losses(group(modes), target)) == sentences


def test_connectors_that_require_exactly_once_are_named() -> None:
    """With exactly.once.support=required they can't be changed on the way back."""
    named = [downgrade_losses(group([Mode.ENABLED]), Mode.PREPARING, requiring=some)[2] for some in ((), ("a", "b-c"))]
    assert [each.partition("changed")[2] for each in named] == [".", ": here a, b-c."]


@pytest.mark.parametrize(
    ("modes", "to", "said"),
    [
        ((Mode.DISABLED, Mode.PREPARING), Mode.ENABLED, ["http://w0:8083 is disabled, so it may be disabled"]),
        ((Mode.PREPARING, Mode.ENABLED), Mode.DISABLED, ["http://w1:8083 is enabled, so it may be enabled"]),
        ((Mode.UNKNOWN,), Mode.ENABLED, ["http://w0:8083 is unknown, so it may be disabled"]),
        ((Mode.UNKNOWN,), Mode.DISABLED, ["http://w0:8083 is unknown, so it may be enabled"]),
        ((Mode.DISABLED, Mode.ENABLED), Mode.PREPARING, []),
        ((Mode.PREPARING,), Mode.ENABLED, []),
    ],
)
def test_enabled_beside_disabled_is_never_begun(modes: tuple[Mode, ...], to: Mode, said: list[str]) -> None:
    assert blocking_modes(group(modes), to) == said


def test_a_good_group_passes_every_gate() -> None:
    gates = evaluate_gates(good())
    assert [(gate.id, gate.status) for gate in gates] == [(gate_id, "pass") for gate_id in GATE_IDS]
    assert all(gate.evidence for gate in gates)


@pytest.mark.parametrize(
    ("gate_id", "changes", "status"),
    [
        ("members_known", {"workers": ()}, "fail"),
        ("members_known", {"workers": (worker(mode=Mode.ABSENT),)}, "fail"),
        ("members_known", {"workers": (worker(mode=Mode.UNREACHABLE),)}, "fail"),
        ("group_stable", {"group_state": "PreparingRebalance"}, "fail"),
        ("group_stable", {"workers": (worker(leader=False),)}, "unknown"),
        ("same_kafka_cluster", {"cluster_ids": {"http://w0:8083": "other"}}, "fail"),
        ("same_kafka_cluster", {"cluster_ids": {}}, "unknown"),
        ("same_kafka_cluster", {"kafka_cluster_id": None}, "unknown"),
        ("worker_versions", {"workers": (worker(version="3.2.3"),)}, "fail"),
        ("worker_versions", {"workers": (worker(version=None),)}, "unknown"),
        ("worker_health", {"workers": (worker(health="starting"),)}, "fail"),
        ("worker_health", {"workers": (worker(health="unknown"),)}, "unknown"),
        ("worker_health", {"workers": (worker(health="unknown", version=None),)}, "unknown"),
        ("worker_health", {"workers": (worker(health="unknown", version="3.8.1"),)}, "pass"),
        ("worker_health", {"workers": (worker(health="unreachable", version="3.8.1"),)}, "unknown"),
        ("modes_proven", {"workers": (worker(mode=Mode.UNKNOWN),)}, "unknown"),
        ("modes_proven", {"workers": (worker(mode=Mode.NOT_ENABLED),)}, "pass"),
        ("modes_proven", {"workers": (worker(mode=Mode.NOT_ENABLED),), "target": Mode.PREPARING}, "unknown"),
        ("no_mixed_modes", {"workers": (worker(), worker(mode=Mode.ENABLED))}, "fail"),
        ("no_mixed_modes", {"workers": (worker(mode=Mode.OLD_VERSION), worker(mode=Mode.ENABLED))}, "fail"),
        ("no_mixed_modes", {"workers": (worker(mode=Mode.NOT_ENABLED), worker(mode=Mode.ENABLED))}, "unknown"),
        ("no_mixed_modes", {"workers": (worker(mode=Mode.PREPARING), worker(mode=Mode.ENABLED))}, "pass"),
        ("config_topic", {"topics": None}, "unknown"),
        ("config_topic", {"topics": {}}, "fail"),
        ("config_topic", {"topics": {"configs": topic("configs", 2)}}, "fail"),
        ("config_topic", {"topics": {"configs": topic("configs", policy="delete")}}, "fail"),
        ("config_topic", {"topics": {"configs": topic("configs", policy=None)}}, "unknown"),
        ("offset_topic", {"topics": None}, "unknown"),
        ("offset_topic", {"topics": {}}, "fail"),
        ("offset_topic", {"topics": {"offsets": topic("offsets", policy="compact,delete")}}, "fail"),
        ("no_open_transactions", {"open_transactions": None}, "unknown"),
        (
            "no_open_transactions",
            {"open_transactions": (OpenTransaction("offsets", Bounds(3, 0, lso=17, end=20)),)},
            "fail",
        ),
        ("no_aborted_records", {"differing_connectors": None}, "unknown"),
        ("no_aborted_records", {"differing_connectors": ("ghost",)}, "fail"),
        ("no_aborted_records", {"differing_connectors": ("ghost",), "workers": ENABLED}, "pass"),
        ("no_aborted_records", {"differing_connectors": ("ghost",), "workers": ()}, "fail"),
        (
            "no_aborted_records",
            {"differing_connectors": ("ghost",), "workers": ENABLED, "target": Mode.DISABLED},
            "fail",
        ),
        ("config_topic_readable", {"config_state": None}, "unknown"),
        ("task_sets_complete", {"config_state": None}, "unknown"),
        ("task_sets_complete", {"config_state": broken_set()}, "fail"),
        ("connectors_healthy", {"connectors": None}, "unknown"),
        ("connectors_healthy", {"connectors": source(states={"task 0": "FAILED"})}, "fail"),
        ("connectors_healthy", {"connectors": source(states={"connector": "STOPPED"})}, "pass"),
        ("connector_support", {"connectors": None}, "unknown"),
        ("connector_support", {"connectors": source(support_errors=None)}, "unknown"),
        (
            "connector_support",
            {"connectors": source(support_errors=("This worker does not have exactly-once source support enabled.",))},
            "pass",
        ),
        (
            "connector_support",
            {
                "connectors": source(
                    support_errors=("The connector does not implement the API required for preflight validation of …",)
                )
            },
            "pass",  # on trust, which `requested` allows
        ),
        (
            "connector_support",
            {"connectors": source(support_errors=("The connector does not support exactly-once semantics …",))},
            "pass",  # it stays at-least-once, and held up every other connector for ever
        ),
        (
            "connector_support",
            {
                "connectors": source(
                    support_errors=("The connector does not support exactly-once semantics …",),
                    config={"exactly.once.support": "required"},
                )
            },
            "fail",
        ),
        ("connector_support", {"connectors": source(type="sink", support_errors=None)}, "pass"),
        ("transaction_timeouts", {"connectors": None}, "unknown"),
        ("transaction_timeouts", {"connectors": source(config=INTERVAL)}, "pass"),
        ("transaction_timeouts", {"connectors": source(config={"transaction.boundary": "interval"})}, "fail"),
        (
            "transaction_timeouts",
            {"connectors": source(config={**INTERVAL, "producer.override.transaction.timeout.ms": "30000"})},
            "fail",
        ),
        ("transaction_timeouts", {"connectors": source(config=INTERVAL), "files": (FLUSHED,)}, "pass"),
        (
            "transaction_timeouts",
            {"connectors": source(config={"transaction.boundary": "interval"}), "files": (FLUSHED,)},
            "pass",
        ),
        ("transaction_boundaries", {"connectors": None}, "unknown"),
        ("transaction_boundaries", {"connectors": source(boundary_errors=("The connector does not …",))}, "fail"),
        ("broker_transaction_timeout", {"max_transaction_timeout_ms": None}, "unknown"),
        ("broker_transaction_timeout", {"max_transaction_timeout_ms": 59_999}, "fail"),
        ("broker_transaction_timeout", {"max_transaction_timeout_ms": 60_000}, "pass"),
        (
            "broker_transaction_timeout",
            {"connectors": source(config={"producer.override.transaction.timeout.ms": "900001"})},
            "fail",
        ),
        (
            "broker_transaction_timeout",
            {
                "connectors": source(
                    config={
                        "producer.override.transaction.timeout.ms": "900001",
                        "producer.override.bootstrap.servers": "elsewhere:9092",
                    }
                )
            },
            "pass",
        ),
        ("fencing_pace", {"crowding": None}, "unknown"),
        ("fencing_pace", {"crowding": {"c": 29}, "workers": TWO_WORKERS}, "pass"),
        ("fencing_pace", {"crowding": {"c": 31}, "workers": TWO_WORKERS}, "fail"),
        ("fencing_pace", {"crowding": {"c": 31}}, "pass"),
        ("fencing_pace", {"crowding": {"c": 91}}, "fail"),
        ("fencing_pace", {"crowding": {"c": 500}, "connectors": source(config=CURE)}, "pass"),
        ("fencing_pace", {"crowding": {"c": 91}, "workers": (worker(version="3.6.2"),)}, "pass"),
        ("fencing_pace", {"crowding": {"c": 91}, "target": Mode.DISABLED}, "pass"),
        ("id_collisions", {"rival_groups": None}, "unknown"),
        ("id_collisions", {"group_id": "a", "rival_groups": {"a-b": ()}}, "pass"),
        ("id_collisions", {"group_id": "g-x", "rival_groups": {"g": (("x-c", 0),)}}, "fail"),
        ("id_collisions", {"group_id": "g-x", "rival_groups": {"g": (("x-c", 1), ("c", 0))}}, "pass"),
        ("id_collisions", {"group_id": "g-x", "rival_groups": {"g": None}}, "unknown"),
        ("id_collisions", {"group_id": "connect-cluster", "rival_groups": {"c-0": ()}}, "fail"),
        ("id_collisions", {"group_id": "x-0", "rival_groups": {"connect": (("cluster-x", 0),)}}, "fail"),
        ("tasks_exactly_once", {"unknown_ids": frozenset({"g-c-0"})}, "pass"),
        (
            "tasks_exactly_once",
            {"unknown_ids": frozenset({"g-c-0"}), "workers": ENABLED, "task_sets_ms": {"c": 1}, "looked_ms": 2},
            "fail",
        ),
        ("tasks_exactly_once", {"unknown_ids": frozenset({"g-c-0"}), "workers": ENABLED}, "unknown"),
        ("tasks_exactly_once", {"unknown_ids": None, "workers": ENABLED}, "unknown"),
        ("tasks_exactly_once", {"unknown_ids": frozenset({"g-other-0"}), "workers": ENABLED}, "pass"),
        ("no_aborted_offsets", {"aborted_offsets": None}, "unknown"),
        ("no_aborted_offsets", {"aborted_offsets": aborted()}, "fail"),
        ("no_aborted_offsets", {"aborted_offsets": aborted(), "workers": ENABLED}, "pass"),
        ("no_aborted_offsets", {"aborted_offsets": aborted(), "workers": (*ENABLED, worker())}, "fail"),
        ("no_aborted_offsets", {"aborted_offsets": aborted(), "workers": ENABLED, "target": Mode.PREPARING}, "fail"),
        ("no_aborted_offsets", {"aborted_offsets": aborted(key=b"junk")}, "pass"),
        ("property_names", {"connectors": None}, "unknown"),
        ("property_names", {"connectors": source(config={"transaction.boundary.interval": "1"})}, "fail"),
        ("property_names", {"files": (WorkerFile("w.properties", {"offsets.storage.topic": "x"}),)}, "fail"),
        ("property_names", {"connectors": source(config={"offset.storage.topic": "x"})}, "fail"),
        ("property_names", {"files": (WorkerFile("w.properties", {"exactly.once.source.enabled": "true"}),)}, "fail"),
        ("rights_granted", {"rights": None}, "unknown"),
        ("rights_granted", {"rights": None, "target": Mode.DISABLED}, "pass"),
        ("rights_granted", {"rights": RightsSeen()}, "pass"),
        ("rights_granted", {"rights": RightsSeen(3, lacking=("no WRITE",))}, "fail"),
        ("rights_granted", {"rights": RightsSeen(3, lacking=("no WRITE",)), "target": Mode.PREPARING}, "fail"),
        ("rights_granted", {"rights": RightsSeen(3, unsure=("who knows",))}, "unknown"),
        ("worker_files", {"files": (WorkerFile("a", {"group.id": "g"}), WorkerFile("b", {"group.id": "h"}))}, "fail"),
        ("worker_files", {"files": (WorkerFile("a", {"exactly.once.source.support": "yes"}),)}, "fail"),
        ("worker_files", {"files": (WorkerFile("a", {"exactly.once.source.support": "ENABLED"}),)}, "pass"),
    ],
)
def test_gates(gate_id: str, changes: dict[str, Any], status: str) -> None:
    gate = {str(gate.id): gate for gate in evaluate_gates(replace(good(), **changes))}[gate_id]
    assert gate.status == status
    assert gate.evidence
    assert bool(gate.fix) == (status != "pass")


def test_a_right_that_hundreds_lack_is_told_for_a_few() -> None:
    seen = replace(good(), rights=RightsSeen(500, lacking=tuple(f"c{number} lacks WRITE" for number in range(500))))
    gate = {str(gate.id): gate for gate in evaluate_gates(seen)}["rights_granted"]
    assert gate.evidence.startswith("c0 lacks WRITE; ")
    assert gate.evidence.endswith("c4 lacks WRITE; 495 more like these")
