"""fence on a real broker and a real worker: zombies really end, live tasks are really protected."""

from __future__ import annotations

import contextlib
import json
import shlex
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from tests.faults.proxy import Api, Fate, Proxy
from tests.hanging_transactions import (
    offsets,
)
from tests.open_transactions import zombie
from tests.sandbox_fixtures import PATIENCE_S, wait_until

pytestmark = pytest.mark.live

Invoke = Any
GROUP = "connect-eos"
MANY, HELD_AFTER = 20_000, 1_000  # ids


def test_a_zombie_is_fenced_and_its_transaction_aborted(
    invoke: Invoke, stack: Any, target_flags: list[str], unique: str
) -> None:
    producer = zombie(stack, unique, unique)
    before = invoke("txn", "describe", unique, "-o", "json", *target_flags).json()["data"]["rows"][0]
    assert (before["state"], before["partitions"]) == ("Ongoing", [{"topic": unique, "partition": 0}])
    lso, end = offsets(stack, unique)
    assert lso < end

    outcome = invoke("fence", unique, "--yes", "-o", "json", *target_flags)
    assert outcome.exit_code == 0, outcome.stderr
    (row,) = outcome.json()["data"]["rows"]
    assert row["outcome"] == "fenced"
    assert row["before"]["producer_epoch"] == before["producer_epoch"]
    assert row["after"]["producer_id"] == before["producer_id"]
    assert row["after"]["producer_epoch"] >= before["producer_epoch"] + 2  # a lost answer costs one more

    with pytest.raises(KafkaException) as caught:
        producer.commit_transaction(PATIENCE_S)
    assert caught.value.args[0].code() == KafkaError._FENCED
    wait_until(lambda: len(set(offsets(stack, unique))) == 1, what="readers to see the abort")
    with contextlib.suppress(KafkaException):  # a fenced producer says so again when it is closed
        producer.close()

    again = invoke("fence", unique, "--yes", "-o", "json", *target_flags).json()["data"]["rows"][0]
    assert again["already_fenced"]
    assert again["after"]["producer_epoch"] >= row["after"]["producer_epoch"] + 1


def test_unknown_ids_are_left_alone_on_a_real_broker_too(invoke: Invoke, target_flags: list[str], unique: str) -> None:
    outcome = invoke("fence", unique, "--yes", "-o", "json", *target_flags)
    assert outcome.exit_code == 0
    assert outcome.json()["data"]["rows"][0]["outcome"] == "skipped_unknown"
    assert invoke("txn", "describe", unique, *target_flags).exit_code == 1
    created = invoke("fence", unique, "--create-unknown", "--yes", "-o", "json", *target_flags)
    assert created.json()["data"]["rows"][0]["outcome"] == "fenced"


@pytest.mark.parametrize("words", [("fence", "--prefix", "wrong-"), ("doctor",)], ids=" ".join)
def test_a_wrong_group_is_told_with_the_one_that_is_there(
    invoke: Invoke, stack: Any, words: tuple[str, ...], target_flags: list[str]
) -> None:
    """Fence had nothing to do with exit code 0, doctor six checks that could not run."""
    wait_until(lambda: invoke("workers", "list", *target_flags).exit_code == 0, what="the group")
    done = invoke(*words, "-b", stack.bootstrap_servers, "-g", "wrong")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "'wrong' does not exist on this Kafka cluster, and nothing shows that it ever did" in done.stderr
    assert f"Connect groups of this Kafka cluster: {GROUP}" in done.stderr


def test_a_live_task_is_refused_then_fenced_and_comes_back(
    invoke: Invoke, target_flags: list[str], file_source: Any
) -> None:
    file_source.append("one")
    file_source.put()
    file_source.wait_running()
    file_source.wait_position(4)
    arguments = ["fence", "--connector", file_source.name, "--yes", *target_flags]

    refused = invoke(*arguments)
    assert refused.exit_code == 6
    assert f"runs task 0 of connector {file_source.name}" in refused.stderr

    fenced = invoke(*arguments, "--live", "-o", "json")
    assert fenced.exit_code == 0, fenced.stderr
    document = fenced.json()
    assert [row["transactional_id"] for row in document["data"]["rows"]] == [f"{GROUP}-{file_source.name}-0"]
    assert document["data"]["rows"][0]["outcome"] == "fenced"
    file_source.append("two")
    wait_until(lambda: file_source.task_states() == ["FAILED"], what="the fenced task to fail")

    (hint,) = [error["hint"] for error in document["errors"] if error["code"] == "live_tasks"]
    command = hint.splitlines()[1]
    assert command.startswith(f"eosctl connectors restart --failed {file_source.name} -u http://127.0.0.1:")
    (died,) = invoke("connectors", "trace", file_source.name, "-o", "json", *target_flags).json()["data"]["rows"]
    assert (died["part"], died["trace"].splitlines()[0]) == ("task 0", died["causes"][0])
    for form in ((), ("-o", "json")):
        printed = invoke("connectors", "trace", file_source.name, *form, *target_flags).stdout
        explained, *_more = invoke("explain", "-", "-o", "json", input=printed).json()["data"]["rows"]
        assert (explained["code"], explained["role"]) == (died["code"], "cause")
    named = invoke("doctor", "-o", "json", *target_flags).json()["data"]["rows"]
    assert died["code"] in {row["code"] for row in named if row["subject"] == f"{file_source.name}/0"}
    restarted = invoke(*shlex.split(command)[1:], "--yes", "-o", "json")
    assert restarted.exit_code == 0, restarted.stderr
    assert [(row["part"], row["after"]) for row in restarted.json()["data"]["rows"]] == [("task 0", "RUNNING")]
    file_source.wait_position(8)

    for verb, after in (("stop", []), ("resume", ["RUNNING"])):
        changed = invoke("connectors", verb, file_source.name, "--yes", "-o", "json", *target_flags)
        assert (changed.exit_code, changed.json()["data"]["summary"]["tasks"]) == (0, len(after)), changed.stderr
        assert [state for state in file_source.task_states() if state != "UNASSIGNED"] == after
    again = invoke("fence", f"{GROUP}-{file_source.name}-0", "--dry-run", "-o", "json", *target_flags)
    assert again.exit_code == 6


def test_a_running_task_is_protected_whatever_group_is_named(
    invoke: Invoke, stack: Any, target_flags: list[str], file_source: Any
) -> None:
    """Without -g, and with another one, it used to be fenced in silence; with --live its worker is not asked."""
    file_source.put()
    file_source.wait_running()
    arguments = ["fence", f"{GROUP}-{file_source.name}-0", "--yes"]
    anywhere = ["-b", stack.bootstrap_servers]
    for flags in (anywhere, [*anywhere, "-g", "another-group"]):
        refused = invoke(*arguments, *flags)
        assert (refused.exit_code, refused.stdout) == (6, ""), refused.stderr
        assert f"of group {GROUP} runs task 0 of connector {file_source.name} now" in refused.stderr
    nowhere = [*anywhere, "-g", GROUP, "-u", "http://127.0.0.1:1"]
    silent = invoke(*arguments, *nowhere)
    assert (silent.exit_code, "--unknown-liveness" in silent.stderr) == (6, True), silent.stderr
    waived = invoke(*arguments, "--live", "--dry-run", "-o", "json", *nowhere)
    assert waived.exit_code == 0, waived.stderr
    assert waived.json()["data"]["rows"][0]["live"] is not None
    mistyped = invoke("fence", "--connector", file_source.name, "--yes", *target_flags, "-g", "mistyped")
    members = f"members of group {GROUP} have connector {file_source.name}"  # and have read what is the topic's
    assert (mistyped.exit_code, members in mistyped.stderr) == (1, True), mistyped.stderr


def test_zombies_of_a_group_that_is_gone_are_fenced_without_more_words(invoke: Invoke, stack: Any, unique: str) -> None:
    """Be it called connect-cluster; and a group that never was is refused, with what was looked at."""
    anywhere = ["-b", stack.bootstrap_servers, "--yes", "-o", "json"]
    for group, connector in ((f"gone-{unique}", "orders"), ("connect-cluster", unique)):
        transactional_id = f"{group}-{connector}-0"
        producer = zombie(stack, transactional_id, unique)
        for words in (["--connector", connector, "--tasks", "1"], ["--prefix", f"{group}-{connector}-"]):
            outcome = invoke("fence", *words, "-g", group, *anywhere)
            assert outcome.exit_code == 0, outcome.stderr
            (row,) = outcome.json()["data"]["rows"]
            assert (row["outcome"], row["owner"]["connector"]) == ("fenced", connector)
        with pytest.raises(KafkaException):
            producer.commit_transaction(PATIENCE_S)
        with contextlib.suppress(KafkaException):
            producer.close()
    never = invoke("fence", "--connector", "orders", "--tasks", "1", "-g", f"never-{unique}", *anywhere)
    assert never.exit_code == 1, never.stderr
    assert "nothing shows that it ever did: no transactional id is its leader's or a task's of it" in never.stderr


def test_a_stopped_connector_is_fenced_without_more_words(
    invoke: Invoke, target_flags: list[str], file_source: Any
) -> None:
    file_source.append("one")
    file_source.put()
    file_source.wait_running()
    file_source.wait_position(4)
    file_source.stop_and_wait()
    outcome = invoke("fence", "--connector", file_source.name, "--yes", "-o", "json", *target_flags)
    assert outcome.exit_code == 0, outcome.stderr
    assert [row["outcome"] for row in outcome.json()["data"]["rows"]] == ["fenced"]
    assert outcome.json()["errors"] == []


def test_the_leader_id_is_refused(invoke: Invoke, target_flags: list[str]) -> None:
    """Run alone, it came before the worker had joined its group, and the id was skipped as one that nobody knows."""
    leader_id = f"connect-cluster-{GROUP}"
    wait_until(
        lambda: invoke("txn", "describe", leader_id, *target_flags).exit_code == 0, what="the leader to claim its id"
    )
    outcome = invoke("fence", leader_id, "--yes", *target_flags)
    assert outcome.exit_code == 6
    assert "--allow-leader" in outcome.stderr


def test_a_leader_that_loses_its_id_fails_one_write_and_takes_it_back(
    invoke: Invoke, target_flags: list[str], file_source: Any
) -> None:
    """What the caution says, on the worker: the next write is a 500, the one after it is done."""
    file_source.put()
    file_source.wait_running()
    leader_id = f"connect-cluster-{GROUP}"
    outcome = invoke("fence", leader_id, "--allow-leader", "--yes", "-o", "json", *target_flags)
    assert outcome.exit_code == 0, outcome.stderr
    (caution,) = [error for error in outcome.json()["errors"] if error["code"] == "leader_id"]
    assert "PUT the unchanged config" in caution["hint"]

    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def put() -> int | None:
        url = f"{file_source.url}/connectors/{file_source.name}/config"
        headers = {"Content-Type": "application/json"}
        body = json.dumps(file_source.config()).encode()
        request = urllib.request.Request(url, data=body, method="PUT", headers=headers)
        try:
            with direct.open(request, timeout=PATIENCE_S) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as exc:
            with exc:
                return None if exc.code == 409 else exc.code  # the group rebalances: nothing was written

    (fenced,) = outcome.json()["data"]["rows"]
    assert [wait_until(put, what="an answer other than 409") for _time in range(2)] == [500, 200]
    (now,) = invoke("txn", "describe", leader_id, "-o", "json", *target_flags).json()["data"]["rows"]
    assert (now["producer_id"], now["producer_epoch"]) > tuple(fenced["after"].values())
    assert now["transaction_timeout_ms"] == 60_000, "the leader's own again"


def test_as_a_process_ids_come_from_stdin_and_stdout_is_one_document(target_flags: list[str], unique: str) -> None:
    ids = [f"{unique}-{number}" for number in range(300)]
    process = subprocess.run(
        [sys.executable, "-m", "eosctl", "fence", "--from-file", "-", "--create-unknown", "--yes", "-o", "json",
         *target_flags],
        input="\n".join(ids).encode(), capture_output=True, timeout=2 * PATIENCE_S, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    document = json.loads(process.stdout)
    assert document["data"]["summary"]["counts"] == {"fenced": 300}
    assert [row["transactional_id"] for row in document["data"]["rows"]] == ids


def test_ctrl_c_ends_with_a_report_and_the_next_run_knows_what_is_done(
    invoke: Invoke, stack: Any, target_flags: list[str], unique: str
) -> None:
    """A proxy holds the requests from some on until Ctrl-C was sent: a fast machine had fenced all ids by then."""
    ids = [f"{unique}-{number}" for number in range(MANY)]
    is_held, was_sent = threading.Event(), threading.Event()

    def hold(api_key: int, number: int) -> Fate:
        if api_key == Api.INIT_PRODUCER_ID and number > HELD_AFTER:
            is_held.set()
            was_sent.wait(PATIENCE_S)
        return Fate.PASS

    with Proxy(stack.bootstrap_servers, on_request=hold) as proxy:
        words = ["--from-file", "-", "--create-unknown", "--yes", "--timeout", "400s", "-o", "json", *target_flags]
        process = subprocess.Popen(
            [sys.executable, "-m", "eosctl", "fence", *words, "-b", proxy.address],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        assert process.stdin is not None
        process.stdin.write("\n".join(ids).encode())
        process.stdin.close()
        process.stdin = None
        assert is_held.wait(2 * PATIENCE_S), "no id was fenced"
        process.send_signal(signal.SIGINT)
        was_sent.set()
        stdout, stderr = process.communicate(timeout=2 * PATIENCE_S)
    assert process.returncode == 130, stderr
    document = json.loads(stdout)
    counts = document["data"]["summary"]["counts"]
    assert counts["fenced"] + counts["unconfirmed"] == MANY
    assert 0 < counts["fenced"] < MANY
    assert next(error["code"] for error in document["errors"] if error["severity"] == "error") == "interrupted"
    done = [row["transactional_id"] for row in document["data"]["rows"] if row["outcome"] == "fenced"]
    some = done[:3]
    plan = invoke("fence", *some, "--dry-run", "-o", "json", *target_flags).json()
    assert [row["already_fenced"] for row in plan["data"]["rows"]] == [True] * len(some)


def test_through_connect_the_ids_are_fenced_and_the_record_is_written(
    invoke: Invoke, target_flags: list[str], file_source: Any
) -> None:
    file_source.append("one")
    file_source.put()
    file_source.wait_running()
    file_source.wait_position(4)
    arguments = ["fence", "--connector", file_source.name, "--via", "connect", "--yes", "-o", "json", *target_flags]
    running = invoke(*arguments)
    assert running.exit_code == 6
    assert "needs it STOPPED" in running.stderr

    file_source.stop_and_wait()
    outcome = invoke(*arguments)
    assert outcome.exit_code == 0, outcome.stderr
    (row,) = outcome.json()["data"]["rows"]
    assert row["outcome"] == "fenced"
    assert row["after"]["producer_epoch"] >= row["before"]["producer_epoch"] + 1
    (state,) = invoke("txn", "describe", row["transactional_id"], "-o", "json", *target_flags).json()["data"]["rows"]
    assert state["transaction_timeout_ms"] == 90_000  # the mark of Connect's own round
    shown = invoke("task-counts", "show", file_source.name, "-o", "json", *target_flags).json()["data"]["rows"]
    assert shown[0]["recorded"] == 0
    file_source.set_state("resume")
    file_source.wait_running()


def test_with_producers_epochs_are_the_same(invoke: Invoke, stack: Any, target_flags: list[str], unique: str) -> None:
    producer = zombie(stack, unique, unique)
    outcome = invoke("fence", unique, "--via", "producer", "--yes", "-o", "json", *target_flags)
    assert outcome.exit_code == 0, outcome.stderr
    (row,) = outcome.json()["data"]["rows"]
    assert (row["outcome"], row["confirmed_by"]) == ("fenced", "answer")
    assert row["after"]["producer_epoch"] >= row["before"]["producer_epoch"] + 2
    with pytest.raises(KafkaException) as caught:
        producer.commit_transaction(PATIENCE_S)
    assert caught.value.args[0].code() == KafkaError._FENCED
    with contextlib.suppress(KafkaException):
        producer.close()
