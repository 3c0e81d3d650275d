"""`eosctl explain` of texts, files and stdin: what it takes for what, what it prints, and how it ends."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Invoke
from tests.failures.manifest import FOLDER

PID = FOLDER / "invalid-pid-mapping-commit-4.3.1.txt"
FENCED = FOLDER / "invalid-producer-epoch-commit-after-4.3.1.txt"


def test_a_file_its_cause_and_its_consequence(invoke: Invoke) -> None:
    outcome = invoke("explain", str(PID), "-o", "json")
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    document = outcome.json()
    assert (document["kind"], document["status"]) == ("failures", "ok")
    cause, consequence = document["data"]["rows"]
    assert (cause["code"], cause["role"], cause["count"]) == ("invalid_pid_mapping", "cause", 1)
    assert (consequence["code"], consequence["explained_by"]) == ("producer_in_error", ["invalid_pid_mapping"])
    assert cause["entry"]["page"] == "docs/failures.md#invalid_pid_mapping"
    assert document["data"]["unknown"] == []


def test_a_command_has_the_id_that_the_text_has(invoke: Invoke) -> None:
    outcome = invoke("explain", str(FENCED))
    assert "transactional ids: pay-2\n" in outcome.stdout
    assert "see: eosctl txn describe pay-2\n" in outcome.stdout
    assert "what it is not: Not proof of a second producer" in outcome.stdout


def test_stdin_and_text(invoke: Invoke) -> None:
    piped = invoke("explain", "-", "-o", "json", input=io.BytesIO(PID.read_bytes() + b"\xff\xfe\r\n")).json()
    given = invoke("explain", PID.read_text("utf-8"), "-o", "json").json()
    codes = [[row["code"] for row in document["data"]["rows"]] for document in (piped, given)]
    assert codes == [["invalid_pid_mapping", "producer_in_error"]] * 2
    assert (piped["data"]["source"], given["data"]["source"]) == ("stdin", "the argument")


def test_what_connectors_trace_prints_can_be_piped(invoke: Invoke) -> None:
    text = (
        "another producer took its transactional id (task_fenced, task 0 on w:1)\n"
        "  org.apache.kafka.connect.errors.ConnectException: Unrecoverable exception trying to send\n"
        "  caused by: ProducerFencedException: There is a newer producer with the same transactionalId which\n"
        "  fix: `eosctl connectors restart --failed c`\n"
    )
    rows = invoke("explain", text, "-o", "json").json()["data"]["rows"]
    assert [row["code"] for row in rows] == ["task_fenced"]


def test_nothing_known_says_what_was_looked_at_and_prints_no_message(invoke: Invoke, tmp_path: Path) -> None:
    log = tmp_path / "some.log"
    log.write_text("a.b.OddException: password=canary\n\tat a.b.C.d(E.java:1)\nCaused by: c.d.Odder: canary\n")
    outcome = invoke("explain", str(log), "-vv")
    assert outcome.exit_code == 1
    assert "not known: a.b.OddException, caused by c.d.Odder (once, line 1)" in outcome.stdout
    assert "no failure is known in 3 lines" in outcome.stderr
    assert "canary" not in outcome.stdout + outcome.stderr
    document = invoke("explain", str(log), "-o", "json").json()
    assert [error["code"] for error in document["errors"]] == ["failure_not_known"]


def test_no_secret_of_a_known_failure_comes_out(invoke: Invoke) -> None:
    line = (
        "ERROR sasl.jaas.config=canary transactionalId=pay-1, InvalidPidMappingException: canary for https://u:canary@h"
    )
    for output in ("text", "json"):
        outcome = invoke("explain", f"{line}\n\tat a.B.c(D.java:1)", "-o", output)
        assert outcome.exit_code == 0
        assert "canary" not in outcome.stdout + outcome.stderr


def test_a_code_is_a_code_though_a_file_has_its_name(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("stale_plan", "InvalidPidMapping"):
        Path(name).write_text(PID.read_text("utf-8"))
    kinds = [invoke("explain", word, "-o", "json").json()["kind"] for word in ("stale_plan", "./stale_plan")]
    assert kinds == ["explain", "failures"]
    assert invoke("explain", "InvalidPidMapping", "-o", "json").json()["kind"] == "failures"


@pytest.mark.parametrize(
    ("word", "exit_code", "said"),
    [
        ("missing.log", 2, "missing.log"),
        ("no/such/file", 2, "no/such/file"),
        ("var/log/Worker", 2, "var/log/Worker"),
        ("my logs/worker.log", 2, "my logs/worker.log"),
        ("InvalidPidMaping", 1, "Did you mean InvalidPidMapping"),
        ("nothing at all", 1, "no failure is known in 1 line"),
        ("", 1, "there is no code"),
    ],
)
def test_what_is_not_there(invoke: Invoke, word: str, exit_code: int, said: str) -> None:
    outcome = invoke("explain", word)
    assert (outcome.exit_code, outcome.stdout.count("\n") <= 1) == (exit_code, True)
    assert said in outcome.stderr


def test_an_exception_with_a_slash_is_no_file(invoke: Invoke) -> None:
    """It was "can't read java.lang.NoClassDefFoundError…: No such file or directory"."""
    said = "java.lang.NoClassDefFoundError: org/apache/kafka/common/utils/AppInfoParser"
    [row] = invoke("explain", said, "-o", "json").json()["data"]["rows"]
    assert (row["code"], row["entry"]["page"]) == ("plugin_does_not_fit", "docs/failures.md#plugin_does_not_fit")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("internal-topic-not-compacted-4.3.1.txt", {
            "topics": ["eos-offsets"], "settings": ["offset.storage.topic"], "groups": ["connect-eos"],
        }),
        ("plugin-does-not-fit-4.4.0.txt", {
            "classes": ["org.apache.kafka.common.utils.AppInfoParser"],
            "needed_by": ["org.apache.kafka.connect.file.FileStreamSourceConnector"],
        }),
        ("connector-not-stopped-4.3.1.json", {"connectors": ["orders"]}),
        ("connector-exists-4.3.1.json", {"connectors": ["orders"]}),
        ("debezium-heartbeat-denied-4.3.1.txt", {"topics": ["__debezium-heartbeat.shop"], "tasks": ["cdc-0"]}),
        ("missing-plugin-worker-4.3.1.txt", {"classes": ["eosctl.tests.SlowSource"]}),
        ("markers-skipped-4.3.1.txt", {
            "transactional_ids": ["connect-eos-orders-0"], "topic_partitions": ["eos-offsets-13", "orders-0"],
        }),
        ("config-refused-4.3.1.json", {"settings": ["file.path"]}),
    ],
)  # fmt: skip
def test_what_the_text_names_is_in_the_answer(invoke: Invoke, text: str, names: dict[str, list[str]]) -> None:
    row = invoke("explain", str(FOLDER / text), "-o", "json").json()["data"]["rows"][0]
    assert {kind: row[kind] for kind in names} == names


def test_the_jar_of_the_frame_is_named(invoke: Invoke) -> None:
    trace = (
        "java.lang.NoSuchMethodError: 'void org.apache.kafka.common.security.ssl.SslFactory.<init>(int)'\n"
        "\tat com.acme.sink.Client.open(Client.java:7) ~[acme-sink-1.2.0.jar:?]\n"
    )
    [row] = invoke("explain", trace, "-o", "json").json()["data"]["rows"]
    assert (row["code"], row["needed_by"], row["jars"]) == (
        "plugin_does_not_fit", ["com.acme.sink.Client"], ["acme-sink-1.2.0.jar"]
    )  # fmt: skip


def test_a_command_names_the_topic_and_the_connector(invoke: Invoke) -> None:
    said = {
        name: invoke("explain", str(FOLDER / name)).stdout
        for name in ("internal-topic-not-compacted-4.3.1.txt", "connector-not-stopped-4.3.1.json")
    }
    assert "--entity-name eos-offsets --add-config" in said["internal-topic-not-compacted-4.3.1.txt"]
    assert "see: eosctl connectors stop orders\n" in said["connector-not-stopped-4.3.1.json"]


@pytest.mark.parametrize(
    ("trace", "said"),
    [
        ("a.b.OddException: x\n\tat a.b.C.d(E.java:1)\nCaused by: java.sql.OddException: y", "java.sql.OddException"),
        ("java.util.concurrent.ExecutionException: c.d.OddException: y\n\tat a.B.c(D.java:1)", "c.d.OddException"),
        ("org.apache.kafka.common.errors.OddException: y\n\tat a.B.c(D.java:1)", "org.apache.kafka.common.errors.Odd"),
    ],
)  # fmt: skip
def test_of_an_unknown_trace_the_last_cause_is_named(invoke: Invoke, trace: str, said: str) -> None:
    """The answer to a whole trace was "Give the whole trace"."""
    [problem] = invoke("explain", trace, "-o", "json").json()["errors"]
    assert said in problem["hint"]
    assert "whole trace" not in problem["hint"]


@pytest.mark.parametrize(
    ("trace", "is_one"), [("out-of-memory.txt", False), ("producer-fenced-commit-4.3.1.txt", True)]
)
def test_what_is_no_failure_of_a_transaction_is_said_to_be_none(invoke: Invoke, trace: str, is_one: bool) -> None:
    path = str(FOLDER / trace)
    assert invoke("explain", path, "-o", "json").json()["data"]["rows"][0]["entry"]["of_transactions"] is is_one
    assert ("This is no failure of a transaction." in invoke("explain", path).stdout) is not is_one


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("org/apache/kafka/common/utils/AppInfoParser", "plugin_does_not_fit"),
        ("HTTP 404 Not Found at /connectors/orders/offsets", "rest_not_found"),
        ("trace of /connectors/orders: Connector orders already exists", "connector_exists"),
    ],
)
def test_words_with_a_slash_are_text(invoke: Invoke, words: str, code: str) -> None:
    assert [row["code"] for row in invoke("explain", words, "-o", "json").json()["data"]["rows"]] == [code]


def test_a_folder_is_no_text(invoke: Invoke, tmp_path: Path) -> None:
    assert invoke("explain", str(tmp_path)).exit_code == 2


def test_a_code_of_the_dictionary_has_its_entry(invoke: Invoke) -> None:
    [row] = invoke("explain", "task_fenced", "-o", "json").json()["data"]["rows"]
    assert (row["type"], row["entry"]["family"]) == ("finding", "connect")
    assert "why, the most likely first:" in invoke("explain", "task_fenced").stdout
    assert "why" not in invoke("explain", "stale_plan").stdout


def test_ndjson_is_a_line_a_failure(invoke: Invoke) -> None:
    lines = invoke("explain", str(PID), "-o", "ndjson").stdout.splitlines()
    assert [json.loads(line)["code"] for line in lines] == ["invalid_pid_mapping", "producer_in_error"]


def test_a_rotated_log_is_read_as_it_lies_there(invoke: Invoke, tmp_path: Path) -> None:
    """A .gz was searched as it is, and so nothing was ever found in one."""
    packed = gzip.compress(PID.read_bytes())
    (tmp_path / "server.log.gz").write_bytes(packed)
    rows = invoke("explain", str(tmp_path / "server.log.gz"), "-o", "json").json()["data"]["rows"]
    assert [row["code"] for row in rows] == ["invalid_pid_mapping", "producer_in_error"]


@pytest.mark.parametrize("damage", [lambda data: data[:-20], lambda data: data[:20] + b"\xff" * 40])
def test_a_damaged_archive_is_said_to_be_one(invoke: Invoke, tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    (tmp_path / "a.gz").write_bytes(damage(gzip.compress(PID.read_bytes())))
    outcome = invoke("explain", str(tmp_path / "a.gz"))
    assert outcome.exit_code == 2
    assert "can't read" in outcome.stderr
