"""Incidents of which REST's word alone tells a part, or the wrong one: stale states, what repeats, two groups."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer

from eosctl.core.findings import ERROR, WARNING
from eosctl.core.ids import task_transactional_id
from eosctl.deadline import Clock
from eosctl.sandbox.operations import Zombie
from eosctl.sandbox.settings import GroupSpec
from eosctl.sandbox.stack import Stack
from tests.envelope import envelope_of
from tests.gameday.ground import Ground, loud
from tests.gameday.incident import Incident, Named, Saboteur, play
from tests.sandbox_fixtures import FileSource, added_group, rest, wait_until

pytestmark = pytest.mark.live
AGO_S = 180
SECOND = "second"


def write_status(ground: Ground, key: str, state: str, worker: str) -> None:
    """Writes what a worker would have written some minutes ago, after all others."""
    producer = Producer({"bootstrap.servers": ground.stack.bootstrap_servers, "enable.metrics.push": False})
    value = {"state": state, "trace": None, "worker_id": worker, "generation": 1}
    topic, at_ms = ground.stack.state.topics[ground.group]["status"], int((time.time() - AGO_S) * 1000)
    producer.produce(topic, json.dumps(value).encode(), key.encode(), timestamp=at_ms)
    assert producer.flush(30) == 0


@contextmanager
def written_too_late(ground: Ground, name: str) -> Iterator[None]:
    """A worker that was frozen, and is no member any more, wrote that it does not run the connector."""
    with ground.source(name) as source:
        write_status(ground, f"status-connector-{name}", "UNASSIGNED", "gone:8083")
        wait_until(lambda: source.rest("/status")["connector"]["state"] == "UNASSIGNED", what="REST to believe it")
        yield


@contextmanager
def stuck_in_its_restart(ground: Ground, name: str) -> Iterator[None]:
    """The worker of the task said that it restarts it, and no more."""
    with ground.source(name) as source:
        [task] = source.rest("/status")["tasks"]
        write_status(ground, f"status-task-{name}-0", "RESTARTING", task["worker_id"])
        wait_until(lambda: source.task_states() == ["RESTARTING"], what="REST to believe it")
        yield


def restart_failed(source: FileSource) -> None:
    rest(f"{source.url}/connectors/{source.name}/restart?includeTasks=true&onlyFailed=true", "POST")
    wait_until(lambda: source.task_states() == ["RUNNING"], what="the task to run again")


CAST = {
    "transforms": "cast",
    "transforms.cast.type": "org.apache.kafka.connect.transforms.Cast$Value",
    "transforms.cast.spec": "int32",
}
"""What fails at each line that is no number."""


@contextmanager
def meanwhile(act: Callable[[], object], *, every_s: float) -> Iterator[None]:
    """Somebody does this all the time."""
    stop = threading.Event()

    def again_and_again() -> None:
        while not stop.wait(every_s):
            act()

    thread = threading.Thread(target=again_and_again)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextmanager
def restarted_by_a_script(ground: Ground, name: str) -> Iterator[None]:
    """The task dies of the same record each time, and runs at the moment of some looks."""
    with ground.source(name) as source:
        source.put(**CAST)
        source.append("two")
        wait_until(lambda: source.task_states() == ["FAILED"], what="the task to fail")
        path = f"{source.url}/connectors/{name}/restart?includeTasks=true&onlyFailed=true"
        with meanwhile(lambda: rest(path, "POST"), every_s=2):
            yield


@contextmanager
def id_taken_again_and_again(ground: Ground, name: str) -> Iterator[None]:
    """Another application has the task's id, and somebody restarts the task each time."""
    with ground.source(name) as source:
        transactional_id = task_transactional_id(ground.group, name, 0)
        for number in range(3):
            for _turn in range(3):
                with Zombie(ground.stack.bootstrap_servers, transactional_id, topic=source.topic, record=b"mine"):
                    pass
            source.append(f"line {number}")
            wait_until(lambda: source.task_states() == ["FAILED"], what="the task to notice")
            restart_failed(source)
        yield


INCIDENTS = (
    Incident(
        "a frozen worker wrote its status too late",
        written_too_late,
        (Named("status_stale", "{}", WARNING),),
        ("eosctl connectors restart {}",),
    ),
    Incident(
        "a task stays RESTARTING",
        stuck_in_its_restart,
        (Named("stuck_restarting", "{}/0"),),
        ("eosctl connectors restart {}",),
    ),
)


@pytest.mark.parametrize("incident", INCIDENTS, ids=str)
def test_it_is_named_and_the_printed_remedy_heals(incident: Incident, ground: Ground, unique: str) -> None:
    play(incident, ground, unique)


@pytest.mark.parametrize(
    ("saboteur", "others"),
    [(restarted_by_a_script, None), (id_taken_again_and_again, 6)],
    ids=["a script restarts it", "another producer takes its id"],
)
def test_what_repeats_is_named_whenever_one_looks(
    saboteur: Saboteur, others: int | None, ground: Ground, unique: str
) -> None:
    with saboteur(ground, unique):
        began_s = time.monotonic()
        [row] = ground.wait_for(frozenset({("fails_again", f"{unique}/0", ERROR)}))[:1]
        print(f"{saboteur.__name__} | {row['code']} | named {time.monotonic() - began_s:.1f} s")
        evidence = row["evidence"]
        assert evidence["failures"] >= 3
        assert (evidence["other_initialisations"] or 0) >= (others or 0)
        assert (evidence["transactional_id"] is None) == (others is None)
    ground.wait_until_quiet()


def test_a_config_that_a_script_puts_all_the_time(ground: Ground, unique: str) -> None:
    """`upgrade verify` is asked in the middle of it, and is about the workers.

    Each config is a rebalance: one that lasts is a gate that fails, and the next look is after it.
    """
    numbers = itertools.count()
    wanted = ("config_written_again", unique, WARNING)
    with ground.source(unique) as source:
        with meanwhile(lambda: source.put(comment=str(next(numbers))), every_s=0.5):
            wait_until(lambda: wanted in loud(ground.look()), what="doctor to count it")
            wait_until(lambda: ground.invoke("upgrade", "verify", "--to", "enabled").exit_code == 0, what="a yes")
        ground.wait_for(frozenset({wanted}))
    ground.wait_until_quiet()


def test_our_own_clock_is_two_hours_behind(ground: Ground, unique: str) -> None:
    """Both workers are of one host and would be one witness; the coordinator is the other one."""
    behind = Clock(now_s=lambda: time.time() - 7200)
    with ground.source(unique):
        done = ground.invoke("doctor", "-o", "json", clock=behind)
        rows = envelope_of(done, "doctor", done.exit_code)["data"]["rows"]
        found = [(row["subject"], row["severity"]) for row in rows if row["code"] == "clock_differs"]
        assert found == [("this machine", WARNING)]
    ground.wait_until_quiet()


def test_a_worker_that_was_left_in_the_former_group(ground: Ground, game_stack: Stack, unique: str) -> None:
    """Both groups were exactly-once, and every record came twice."""
    prefix = game_stack.state.topics[ground.group]["config"].removesuffix("-configs")
    with ground.source(unique) as source, added_group(game_stack, GroupSpec(SECOND, topic_prefix=prefix)):

        def is_named() -> bool:
            source.append("more")
            return ("two_groups", unique, ERROR) in loud(ground.look())

        wait_until(is_named, what="doctor to name both groups")
    ground.wait_until_quiet()
