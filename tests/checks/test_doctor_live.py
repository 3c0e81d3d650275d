"""connectors check, a doctor that leaves no trace, and the repair of aborted offsets, on real workers and brokers.

What doctor must name, and what heals it: tests/gameday.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from eosctl.sandbox.stack import Stack
from tests.conftest import Invoke
from tests.envelope import envelope_of
from tests.sandbox_fixtures import PATIENCE_S, FileSource, wait_until

pytestmark = pytest.mark.live

OFFSETS = "connect-offsets"


def test_overrides_that_tasks_die_of_and_those_that_are_ignored(
    invoke: Invoke, target_flags: list[str], file_source: FileSource
) -> None:
    """Every gate passed over them; what Connect ignores is a warning, for the task runs."""

    def codes() -> list[tuple[str, str]]:
        rows = invoke("connectors", "check", "--connector", file_source.name, *target_flags, "-o", "json").json()
        return [(row["code"], row["severity"]) for row in rows["data"]["rows"] if row["subject"] == file_source.name]

    for name, value in (("retries", "0"), ("max.in.flight.requests.per.connection", "6")):
        file_source.more.clear()
        file_source.put(**{f"producer.override.{name}": value})
        wait_until(lambda: file_source.task_states() == ["FAILED"], what=f"the task to die of {name}={value}")
        [task] = file_source.rest("/status")["tasks"]
        assert "ConfigException" in task["trace"], task
        assert ("producer_refuses", "error") in codes()
    file_source.more.clear()
    file_source.put(**{"producer.override.enable.idempotence": "false", "producer.override.transactional.id": "mine"})
    file_source.append("one")
    file_source.wait_running()
    file_source.wait_position(4)
    assert codes() == [("override_ignored", "warning")] * 2


def test_an_aborted_offset_is_seen_and_the_plan_repairs_it(
    invoke: Invoke, target_flags: list[str], stack: Stack, unique: str, tmp_path: Path
) -> None:
    """No connector of that name exists, so nothing has to be stopped."""
    key = f'["{unique}",{{"f":"a"}}]'
    transactional_id = f"aborting-{unique}"
    producer = Producer({"bootstrap.servers": stack.bootstrap_servers, "transactional.id": transactional_id})
    producer.init_transactions(PATIENCE_S)
    for value, ending in ((b'{"n":1}', producer.commit_transaction), (b'{"n":9}', producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce(OFFSETS, key=key.encode(), value=value, partition=0)
        producer.flush(PATIENCE_S)
        ending(PATIENCE_S)

    def records() -> list[Any]:
        outcome = invoke("upgrade", "plan", "--to", "disabled", "--hard", *target_flags, "-o", "json")
        document = envelope_of(outcome, "upgrade-plan", outcome.exit_code)
        assert not [reason for reason in document["data"]["hard"]["unknown"] if "offsets" in reason]
        return [each for each in document["data"]["hard"]["aborted_offsets"]["records"] if each["key"] == key]

    [record] = wait_until(records, what="the abort marker")
    assert record == {"topic": OFFSETS, "partition": 0, "key": key, "value": '{"n":1}'}
    repair = tmp_path / "repair.ndjson"
    repair.write_text(json.dumps(record), encoding="utf-8")
    command = ("offsets", "import", str(repair), "--store", "global", "--keep-partitions", "--rewrite", "--yes")
    assert invoke(*command, *target_flags).exit_code == 0
    wait_until(lambda: not records(), what="the repair to be seen")


def test_the_address_of_a_controller_is_no_kafka(invoke: Invoke, stack: Stack) -> None:
    """Each check waited there in vain: 41 s, nine rows, and exit code 1."""
    [broker] = stack.state.of_kind("broker")
    settings = (Path(broker.log).parent / "server.properties").read_text(encoding="utf-8")
    [controller] = re.findall(r"CONTROLLER://(127[.0-9]+:[0-9]+)", settings)
    outcome = invoke("doctor", "-b", controller, "-g", "connect-eos", "-o", "json")
    [row] = envelope_of(outcome, "doctor", 4)["data"]["rows"]
    assert (row["code"], row["severity"], row["subject"]) == ("kafka_unreachable", "error", controller)
    assert "is the listener of a controller" in row["message"]


def test_looking_leaves_no_error_in_a_workers_log(
    invoke: Invoke, target_flags: list[str], stack: Stack, file_source: FileSource
) -> None:
    """The probe of the mode lacked a topic: each run left stack traces, one of `doctor` two for each worker."""
    file_source.put()
    file_source.wait_running()
    [node] = stack.state.of_kind("worker")
    log = Path(node.log)
    before = log.stat().st_size
    [worker] = invoke("workers", "probe", *target_flags, "-o", "json").json()["data"]["rows"]
    assert worker["mode"] == "enabled"
    for words in (("doctor",), ("doctor", "--no-validate"), ("upgrade", "plan", "--to", "enabled")):
        assert invoke(*words, *target_flags).exit_code in (0, 3)  # other tests' topics have findings
    said = log.read_bytes()[before:].decode(errors="replace").splitlines()
    assert [line for line in said if "/config/validate " in line]
    assert [line for line in said if "ERROR" in line and "validating" in line] == []
