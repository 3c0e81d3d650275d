"""`eosctl connectors stop|pause|resume|restart|trace`: the plan, the wait, and each end of it, in memory."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from eosctl.connectors.look import ConnectorNow
from eosctl.connectors.waiting import await_connector
from eosctl.core.transactions import FENCING_FAILED
from eosctl.errors import UnauthorizedError
from tests.conftest import Invoke, Outcome
from tests.fakes.faults import EVERY, Call
from tests.fakes.world import CONFIGS, World

W0, W1 = "http://w0:8083", "http://w1:8083"
WHERE = ("-b", "localhost:1", "-g", "g")


@pytest.fixture
def world() -> World:
    """Connector orders with two tasks on two workers, of which one leads."""
    made = World(modes={W0: "enabled", W1: "enabled"})
    made.connect.add("orders", tasks=2)
    return made


def run(invoke: Invoke, world: World, *words: str, where: tuple[str, ...] = WHERE) -> Outcome:
    return invoke("connectors", *words, *where, "--timeout", "60s", **world.surroundings)


def change(invoke: Invoke, world: World, *words: str) -> tuple[Outcome, dict[str, tuple[Any, Any]]]:
    """The outcome, and part -> before and after."""
    outcome = run(invoke, world, *words, "--yes", "-o", "json")
    rows = outcome.json()["data"].get("rows", [])
    return outcome, {row["part"]: (row["before"], row["after"]) for row in rows}


@pytest.mark.parametrize(
    ("before", "verb", "rows", "undo"),
    [
        ("RUNNING", "stop", {"connector": "STOPPED", "task 0": None, "task 1": None}, "resume"),
        ("PAUSED", "stop", {"connector": "STOPPED", "task 0": None, "task 1": None}, "pause"),
        ("RUNNING", "pause", {"connector": "PAUSED", "task 0": "PAUSED", "task 1": "PAUSED"}, "resume"),
        ("STOPPED", "pause", {"connector": "PAUSED"}, "stop"),
        ("PAUSED", "resume", {"connector": "RUNNING", "task 0": "RUNNING", "task 1": "RUNNING"}, "pause"),
        ("STOPPED", "resume", {"connector": "RUNNING", "task 0": "RUNNING", "task 1": "RUNNING"}, "stop"),
        ("RUNNING", "restart", {"connector": "RUNNING", "task 0": "RUNNING", "task 1": "RUNNING"}, None),
        ("PAUSED", "restart", {"connector": "PAUSED", "task 0": "PAUSED", "task 1": "PAUSED"}, None),
    ],
)
def test_a_change_is_over_when_it_can_be_seen(
    invoke: Invoke, world: World, before: str, verb: str, rows: dict[str, str | None], undo: str | None
) -> None:
    tasks = 0 if before == "STOPPED" else 2
    world.connect.add("orders", {"tasks.max": "2"}, state=before, tasks=tasks)
    outcome, changed = change(invoke, world, verb, "orders")
    assert (outcome.exit_code, outcome.json()["kind"]) == (0, "connectors-change-result"), outcome.stderr
    assert {part: after for part, (_before, after) in changed.items()} == rows
    assert changed["connector"][0] == before
    data = outcome.json()["data"]
    assert data["undo"] == (undo and f"eosctl connectors {undo} orders")
    assert data["summary"]["tasks"] == len([after for after in rows.values() if after]) - 1
    assert not world.connect.rebalancing


def keep_state(world: World, target: str | None) -> None:
    """The config topic has orders, in a state that was asked for; None: it has no orders."""
    world.topics.add_topic(CONFIGS)
    if target is not None:
        world.keep_config("connector-orders", {"properties": world.connect.connectors["orders"].config})
        world.keep_config("target-state-orders", {"state": "PAUSED", "state.v2": target})


@pytest.mark.parametrize(
    ("state", "words"),
    [("STOPPED", ["stop"]), ("PAUSED", ["pause"]), ("RUNNING", ["resume"]), ("RUNNING", ["restart", "--failed"])],
)
def test_what_is_so_already_is_left_alone(invoke: Invoke, world: World, state: str, words: list[str]) -> None:
    world.connect.add("orders", state=state)
    keep_state(world, "STOPPED")
    asked: list[Call] = []
    for method in ("set_state", "restart"):
        world.connect.before(method, asked.append)
    outcome = run(invoke, world, words[0], "orders", *words[1:])  # no question either
    assert (outcome.exit_code, outcome.stdout.splitlines()[0]) == (0, "There is nothing to do.")
    assert asked == []


@pytest.mark.parametrize("shown_at_last", [True, False])
def test_a_stop_after_a_start_that_is_not_shown_yet_is_no_stop_of_nothing(
    invoke: Invoke, world: World, shown_at_last: bool
) -> None:
    """It was "nothing to do", with exit code 0, and a moment later the connector ran."""
    world.connect.add("orders", {"tasks.max": "2"}, state="STOPPED", tasks=0)
    keep_state(world, "STOPPED")
    if shown_at_last:
        world.connect.worker().set_state("orders", "resume")
    else:
        world.keep_config("target-state-orders", {"state": "STARTED", "state.v2": "STARTED"})
    outcome, changed = change(invoke, world, "stop", "orders")
    assert (outcome.exit_code, outcome.json()["kind"]) == (0, "connectors-change-result"), outcome.stderr
    assert changed["connector"][1] == "STOPPED"
    assert outcome.json()["data"]["rows"][0]["outcome"] == ("changed" if shown_at_last else "asked")
    world.time.sleep(60)
    made = world.connect.connectors["orders"]
    assert (made.target, made.state, made.tasks) == ("STOPPED", "STOPPED", {})


@pytest.mark.parametrize("topic", [True, False])
def test_what_may_have_been_asked_to_start_is_stopped_again(invoke: Invoke, world: World, topic: bool) -> None:
    """The config topic is another one, or can't be read: what REST shows may be about to change. It was `changed`."""
    world.connect.add("orders", state="STOPPED")
    if topic:
        keep_state(world, None)
    asked: list[Call] = []
    world.connect.before("set_state", asked.append)
    outcome, changed = change(invoke, world, "stop", "orders")
    assert (outcome.exit_code, changed) == (7, {"connector": ("STOPPED", "STOPPED")}), outcome.stderr
    assert [row["outcome"] for row in outcome.json()["data"]["rows"]] == ["asked"]
    assert [each.what[-1] for each in asked] == ["stop"]
    [problem] = outcome.json()["errors"]
    assert (problem["severity"], "not known" in problem["message"]) == ("warning", True)


def test_the_plan_and_the_result(invoke: Invoke, world: World, golden: Callable[[str, str], None]) -> None:
    """With --dry-run nothing is asked of the worker."""
    planned = run(invoke, world, "stop", "orders", "--dry-run")
    assert world.connect.connectors["orders"].target == "STARTED"
    golden("connectors/stop-plan.txt", planned.stdout)
    golden("connectors/stop-result.txt", run(invoke, world, "stop", "orders", "--yes").stdout)
    world.connect.add("orders", tasks=2, failed=(1,))
    golden("connectors/trace.txt", run(invoke, world, "trace", "orders").stdout)


def test_a_task_that_a_member_still_holds_is_waited_for(invoke: Invoke, world: World) -> None:
    """REST calls a connector STOPPED while a follower still ends its task."""
    world.connect.stops_slowly[("orders", 1)] = 8.0
    began_s = world.time.now_s
    outcome, changed = change(invoke, world, "stop", "orders")
    assert (outcome.exit_code, changed["task 1"]) == (0, ("RUNNING", None))
    assert world.time.now_s - began_s >= 8.0


def test_who_may_not_describe_the_group_stops_by_what_rest_shows_and_reads_that(invoke: Invoke, world: World) -> None:
    world.brokers.deny_groups.add("g")
    outcome = run(invoke, world, "stop", "orders", "--yes", where=(*WHERE, "-u", W0))
    assert outcome.exit_code == 0, outcome.stderr
    assert "whether a member still ends a task of orders is not known" in outcome.stderr


def test_only_what_failed_is_restarted(invoke: Invoke, world: World) -> None:
    world.connect.add("orders", tasks=2, failed=(1,))
    outcome, changed = change(invoke, world, "restart", "orders", "--failed")
    assert (outcome.exit_code, changed) == (0, {"task 1": ("FAILED", "RUNNING")})
    assert outcome.json()["data"]["undo"] is None


@pytest.mark.parametrize("verb", ["restart", "resume"])
def test_what_fails_again_is_told_with_what_it_died_of(invoke: Invoke, world: World, verb: str) -> None:
    made = world.connect.add("orders", tasks=2, state="RUNNING" if verb == "restart" else "PAUSED")
    world.connect.after("start_task", lambda _call: made.fail(trace=FENCING_FAILED))
    outcome, changed = change(invoke, world, verb, "orders")
    assert (outcome.exit_code, changed["task 0"][1]) == (1, "FAILED")
    [problem] = outcome.json()["errors"]
    assert problem["code"] == "fencing_failed"
    assert problem["message"].startswith("orders/0 is FAILED: the old tasks could not be fenced")
    assert problem["message"].endswith("(and 1 more like it)")
    assert problem["hint"].startswith("`eosctl connectors restart --failed orders`")


@pytest.mark.parametrize(("verb", "exit_code"), [("pause", 0), ("resume", 1)])
def test_what_failed_stays_so_and_that_is_said_before(invoke: Invoke, world: World, verb: str, exit_code: int) -> None:
    world.connect.add("orders", tasks=2, state="PAUSED" if verb == "resume" else "RUNNING", failed=(1,))
    [problem] = run(invoke, world, verb, "orders", "--dry-run", "-o", "json").json()["errors"]
    assert (problem["code"], problem["hint"]) == ("failed_stays", "eosctl connectors restart --failed orders")
    outcome, changed = change(invoke, world, verb, "orders")
    assert (outcome.exit_code, set(changed)) == (exit_code, {"connector", "task 0"}), outcome.stderr


def test_tasks_of_a_failed_connector_are_waited_for(invoke: Invoke, world: World) -> None:
    """A connector that was FAILED all the time said nothing of its tasks, which were shown as they were before."""
    world.connect.connectors["orders"].state = "FAILED"
    outcome, changed = change(invoke, world, "pause", "orders")
    assert (outcome.exit_code, changed["task 0"]) == (0, ("RUNNING", "PAUSED")), outcome.stderr


def test_a_restart_that_never_comes_runs_out_of_time(invoke: Invoke, world: World) -> None:
    world.connect.add("orders", tasks=2, failed=(1,))
    world.connect.after("start_task", lambda _call: world.connect.left(W1))
    outcome = run(invoke, world, "restart", "orders", "--failed", "--yes")
    assert outcome.exit_code == 4
    assert "timed out while waiting for orders to be restarted; last seen: " in outcome.stderr
    assert "eosctl connectors trace orders" in outcome.stderr


def test_an_interrupted_wait_says_that_the_change_was_requested(invoke: Invoke, world: World) -> None:
    """It was `interrupted` and no more: nobody knew whether the connector had been asked to stop."""

    def interrupt(_call: Call) -> None:
        raise KeyboardInterrupt

    world.connect.after("set_state", lambda _call: world.connect.before("connectors", interrupt))
    outcome = run(invoke, world, "stop", "orders", "--yes", "-o", "json")
    document = outcome.json()
    assert (outcome.exit_code, document["errors"][0]["code"]) == (130, "interrupted")
    assert "eosctl connectors trace orders" in document["errors"][0]["hint"]


def test_a_task_whose_start_throws_is_named_with_its_worker(invoke: Invoke, world: World) -> None:
    """It stays RESTARTING for ever: a minute went by without a word, and "timed out" was all that came then."""
    made = world.connect.add("orders", tasks=2, failed=(1,))

    def never_started(_call: Call) -> None:
        made.tasks[1].state = "RESTARTING"

    world.connect.after("start_task", never_started)
    outcome = run(invoke, world, "restart", "orders", "--failed", "--yes")
    assert outcome.exit_code == 4
    waiting, timed_out = (line for line in outcome.stderr.splitlines() if "waiting for orders to be restarted" in line)
    for line in (waiting, timed_out):
        assert "RESTARTING is task 1 at w1:8083" in line
    assert "the log of its worker" in outcome.stderr


def test_a_trace_is_told_from_the_outermost_to_the_deepest_cause(invoke: Invoke, world: World) -> None:
    trace = "a.b.Outer: first\n\tat a.B.c(D.java:1)\nCaused by: a.b.Inner: deepest\n\t... 7 more\n"
    world.connect.add("orders", tasks=2).fail(1, trace=trace)
    outcome = run(invoke, world, "trace", "orders", where=("-u", W0))
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    assert "  a.b.Outer: first\n  caused by: a.b.Inner: deepest\n" in outcome.stdout
    [row] = run(invoke, world, "trace", "orders", "-o", "json").json()["data"]["rows"]
    assert (row["part"], row["trace"], row["causes"]) == (
        "task 1",
        trace,
        ["a.b.Outer: first", "a.b.Inner: deepest"],
    )
    world.connect.connectors["orders"].heal()
    assert run(invoke, world, "trace", "orders").stdout.startswith("Nothing is FAILED.\n")


@pytest.mark.parametrize("words", [["trace"], ["stop", "--yes"], ["restart", "--failed", "--yes"]])
@pytest.mark.parametrize(
    ("broken", "exit_code", "said"),
    [
        ("name", 1, "knows no connector nobody\n  Names are case-sensitive. Connectors of the group: orders."),
        ("down", 4, "no worker can be asked: "),
        ("away", 5, "no worker can be asked: "),
        ("cluster", 6, "uses Kafka cluster another, not fake-cluster-id"),
    ],
)
def test_what_keeps_it_from_looking(
    invoke: Invoke, world: World, words: list[str], broken: str, exit_code: int, said: str
) -> None:
    if broken == "down":
        world.connect.down |= {W0, W1}
    if broken == "away":
        world.connect.fail_always("root", UnauthorizedError("401"))
    if broken == "cluster":
        world.connect.kafka_cluster_id = "another"
    outcome = run(invoke, world, words[0], "nobody" if broken == "name" else "orders", *words[1:])
    assert (outcome.exit_code, said in outcome.stderr) == (exit_code, True), outcome.stderr


def test_one_worker_that_is_silent_is_passed_over(invoke: Invoke, world: World) -> None:
    world.connect.frozen.add(W0)
    outcome, changed = change(invoke, world, "pause", "orders")
    assert (outcome.exit_code, changed["connector"]) == (0, ("RUNNING", "PAUSED")), outcome.stderr


def test_a_name_that_no_request_can_have(invoke: Invoke, world: World) -> None:
    world.connect.version = "4.3.1"
    world.connect.add("a/b")
    outcome = run(invoke, world, "stop", "a/b", "--yes")
    assert outcome.exit_code == 1
    assert "takes no slash" in outcome.stderr
    world.connect.version = "3.9.2"
    assert run(invoke, world, "stop", "a/b", "--yes").exit_code == 0


def test_before_kafka_3_5_nothing_can_be_stopped(invoke: Invoke, world: World) -> None:
    world.connect.version = "3.4.1"
    outcome = run(invoke, world, "stop", "orders", "--yes")
    assert outcome.exit_code == 1
    assert "a connector can be stopped from Kafka 3.5 on" in outcome.stderr


def test_a_stopped_connector_is_resumed_and_not_restarted(invoke: Invoke, world: World) -> None:
    world.connect.add("orders", state="STOPPED")
    outcome = run(invoke, world, "restart", "orders", "--yes")
    assert outcome.exit_code == 6
    assert "Start it: eosctl connectors resume orders" in outcome.stderr


def test_a_plan_that_somebody_else_has_overtaken(invoke: Invoke, world: World) -> None:
    """What would be undone is what was there when the change was made."""
    world.connect.after("connectors", lambda _call: world.connect.add("orders", state="PAUSED"))
    outcome = run(invoke, world, "stop", "orders", "--yes", "-o", "json")
    assert (outcome.exit_code, outcome.json()["errors"][0]["code"]) == (6, "stale_plan")


def test_a_wait_asks_for_the_one_connector(world: World) -> None:
    """Each poll asked for all of them, with configs and tasks: megabytes, four times a second."""
    asked: Counter[str] = Counter()
    world.connect.before(EVERY, lambda call: asked.update([call.method]))
    seen: list[ConnectorNow] = []

    def arrived(now: ConnectorNow) -> bool:
        seen.append(now)
        if len(seen) == 10:
            world.connect.connectors["orders"].fail(1)
        return now.tasks == ("RUNNING", "FAILED")

    await_connector(world.app(), "orders", W0, arrived, doing="waiting", hint="")
    assert len(seen) == 11, "what has changed is seen at once"
    assert (asked["connector_status"], asked["connectors"]) == (11, 2)


def test_a_wait_ends_also_where_the_status_tells_nothing_new(world: World) -> None:
    """Configs change without it; they are looked at every five seconds."""
    polls: list[ConnectorNow] = []

    def arrived(now: ConnectorNow) -> bool:
        polls.append(now)
        world.connect.connectors["orders"].config["topic"] = "new"
        return now.config.get("topic") == "new"

    await_connector(world.app(), "orders", W0, arrived, doing="waiting", hint="")
    assert 15 <= len(polls) <= 25
    world.connect.fail_always("connector_status", UnauthorizedError("no"))
    polls.clear()
    world.connect.connectors["orders"].config.pop("topic")
    await_connector(world.app(), "orders", W0, arrived, doing="waiting", hint="")
    assert len(polls) == 2, "where it may not be asked for, all are"


def test_a_rebalance_is_waited_out(invoke: Invoke, world: World) -> None:
    world.connect.rebalance()
    outcome, changed = change(invoke, world, "restart", "orders")
    assert (outcome.exit_code, changed["connector"]) == (0, ("RUNNING", "RUNNING")), outcome.stderr


def test_what_was_changed_can_be_taken_back_from_the_audit_log(invoke: Invoke, world: World) -> None:
    change(invoke, world, "stop", "orders")
    [row] = json.loads(invoke("history", "-o", "json").stdout)["data"]["rows"]
    assert (row["command"], row["undo"]) == ("connectors stop", "eosctl connectors resume orders")
