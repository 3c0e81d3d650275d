"""Which topics `acls generate` grants rights on: from a worker, its file, and the connector's config."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eosctl.errors import UnauthorizedError
from tests.acls.acl_commands import OFFLINE
from tests.conftest import Invoke, Outcome
from tests.fakes.config_topic import config_records, created
from tests.fakes.config_world import ConfigWorld
from tests.fakes.faults import Call

W0, FAR = "http://w0:8083", "http://far:8083"


def worker_world(**world: Any) -> ConfigWorld:
    """One worker, which a test gives its connectors."""
    return ConfigWorld(modes={W0: "enabled"}, **world)


def asked(invoke: Invoke, there: ConfigWorld, *words: str) -> Outcome:
    """`acls generate --connector orders` for the producer, where a worker tells of it."""
    options = ("--connector", "orders", "--role", "producer", "-o", "json", *words)
    return invoke("acls", "generate", "-g", "g", *options, doors=there.doors())


def of_topics(outcome: Outcome) -> dict[tuple[str, str], bool]:
    """Topic and pattern -> whether the right to write there is needed for sure."""
    rows = outcome.json()["data"]["rows"]
    return {
        (row["resource_name"], row["pattern_type"]): not row["optional"]
        for row in rows
        if row["resource_type"] == "Topic" and row["operation"] in ("WRITE", "READ")
    }


def test_topics_come_from_a_worker_and_from_the_config(invoke: Invoke) -> None:
    """They had to be named by hand, though the worker and the config know them."""
    there = worker_world()
    debezium = {
        "connector.class": "io.debezium.connector.mysql.MySqlConnector", "tasks.max": "1", "topic.prefix": "shop",
        "heartbeat.interval.ms": "100", "signal.enabled.channels": "kafka", "signal.kafka.topic": "calls",
        "schema.history.internal.kafka.topic": "ddl", "offsets.storage.topic": "own",
    }  # fmt: skip
    there.connect.add("orders", debezium).topics |= {"shop.shop.orders"}
    words = ("-u", W0, "--role", "consumer")
    found = asked(invoke, there, *words)
    unread = [each["code"] for each in found.json()["errors"]]
    assert (found.exit_code, unread) == (0, ["connectors_unknown"]), "no worker knows task-count records"
    assert of_topics(found) == {
        ("own", "LITERAL"): True,
        ("shop.shop.orders", "LITERAL"): True,
        ("shop", "LITERAL"): True,
        ("__debezium-heartbeat.shop", "LITERAL"): True,
        ("shop.", "PREFIXED"): False,
        ("ddl", "LITERAL"): False,
        ("calls", "LITERAL"): False,
    }
    ids = [row["resource_name"] for row in found.json()["data"]["rows"] if row["resource_type"] == "TransactionalId"]
    assert set(ids) == {"g-orders-0"}
    history = [row for row in found.json()["data"]["rows"] if row["resource_name"] == "ddl"]
    assert {(row["role"], row["operation"]) for row in history if not row["optional"]} == set()
    assert {row["operation"] for row in history if row["role"] == "producer"} == {"WRITE", "DESCRIBE", "CREATE"}
    assert not [row for row in history if "FAILS" in row["note"]], "its own producer writes it, not the task's"
    named = asked(invoke, there, *words, "--output-topic", "out")
    assert set(of_topics(named)) == {("own", "LITERAL"), ("out", "LITERAL")}
    unlike = asked(invoke, worker_world(), "-u", W0)
    assert (unlike.exit_code, "no connector orders" in unlike.stderr) == (1, True)


def test_a_member_of_the_group_tells_where_only_the_cluster_is_named(invoke: Invoke) -> None:
    there = worker_world(records=config_records(*created("orders", 1, config={"tasks.max": "2"})))
    there.connect.add("orders").topics |= {"lines"}
    found = asked(invoke, there, "-b", "localhost:1")
    assert (found.exit_code, found.stderr) == (0, "")
    assert of_topics(found) == {("connect-offsets", "LITERAL"): True, ("lines", "LITERAL"): True}


def test_a_config_topic_that_can_not_be_read_leaves_the_worker(invoke: Invoke) -> None:
    """Nothing said so, as if the worker knew how many ids a round fences."""
    there = worker_world(described=())
    there.connect.add("orders", {"tasks.max": "2", "topic": "lines"})
    where = ("-b", "localhost:1")
    found = asked(invoke, there, *where, "-u", W0)
    assert (found.exit_code, [each["code"] for each in found.json()["errors"]]) == (0, ["connectors_unknown"])
    assert {row["resource_name"] for row in found.json()["data"]["rows"]} == {
        "g-orders-0", "g-orders-1", "connect-offsets", "lines"
    }  # fmt: skip
    principals = ("--connector", "orders", "--principal", "User:w", "--output-topic", "lines")
    checked = invoke("acls", "check", *where, "-u", W0, "-g", "g", *principals, "-o", "json", doors=there.doors())
    assert "connectors_unknown" in [each["what"] for each in checked.json()["data"]["unseen"]]
    there.other_group("h", FAR).add("orders", {"tasks.max": "9"})
    other = asked(invoke, there, *where, "-u", FAR)
    assert (other.exit_code, "there is no topic connect-configs" in other.stderr) == (1, True)
    alone = asked(invoke, there, *where)
    assert (alone.exit_code, "there is no topic connect-configs" in alone.stderr) == (1, True)
    there.connect.down.add(W0)
    down = asked(invoke, there, *where, "-u", W0)
    assert (down.exit_code, "there is no topic connect-configs" in down.stderr) == (1, True)


def test_transforms_leave_what_the_worker_tells(invoke: Invoke) -> None:
    """What goes into a router is no topic."""
    there = worker_world()
    there.connect.add("orders", {"topic": "in", "transforms": "route"}).topics |= {"out"}
    there.connect.connectors["orders"].topics.discard("in")
    assert of_topics(asked(invoke, there, "-u", W0)) == {
        ("connect-offsets", "LITERAL"): True,
        ("out", "LITERAL"): True,
    }
    there.connect.connectors["orders"].topics.clear()
    assert of_topics(asked(invoke, there, "-u", W0))["in", "LITERAL"] is False


def test_a_worker_that_keeps_no_track_of_topics_leaves_the_config(invoke: Invoke) -> None:
    there = worker_world()
    there.connect.add("orders", {"topic": "lines"})
    there.connect.fail_always("topics", UnauthorizedError("403 (Topic tracking is disabled.)"))
    found = asked(invoke, there, "-u", W0)
    assert of_topics(found) == {("connect-offsets", "LITERAL"): True, ("lines", "LITERAL"): True}
    assert "rights are for what their configs say" in found.stderr
    assert "Topic tracking is disabled" in found.stderr
    there.connect.connectors["orders"].config.pop("topic")
    missing = asked(invoke, there, "-u", W0)
    assert "the output topics of orders are not known" in missing.stderr
    assert "Name them with --output-topic" in missing.stderr


@pytest.mark.parametrize(
    ("line", "role", "hint"),
    [
        ("config.storage.topic=${env:T}", "worker", "--config-topic"),
        ("offset.storage.topic=${env:T}", "producer", "--offset-topic"),
        ("status.storage.topic=${env:T}", "worker", "status_topic=TOPIC"),
        ("status.storage.topic=${env:T}", "producer", None),
    ],
)
def test_a_placeholder_in_a_workers_file_is_no_topic(
    invoke: Invoke, tmp_path: Path, line: str, role: str, hint: str | None
) -> None:
    """The lines for kafka-acls granted rights on a topic of the name `${env:T}`, and then on Kafka's usual one."""
    worker = tmp_path / "worker.properties"
    worker.write_text(f"group.id=g\n{line}\n")
    outcome = invoke("acls", "generate", "-w", str(worker), *OFFLINE[2:], "--role", role)
    assert outcome.exit_code == (2 if hint else 0)
    assert (hint or "") in outcome.stderr
    assert "${env:T}" not in outcome.stdout
    if hint:
        assert f"a right is needed on the {line.partition('=')[0]}, which only a worker can resolve" in outcome.stderr


def test_a_topic_that_is_named_needs_no_word_of_the_workers_file(invoke: Invoke, tmp_path: Path) -> None:
    worker = tmp_path / "worker.properties"
    worker.write_text("group.id=g\noffset.storage.topic=${env:T}\n")
    words = ("-w", str(worker), *OFFLINE[2:], "--role", "producer", "-o", "json")
    named = invoke("acls", "generate", *words, "--offset-topic", "mine")
    assert (named.exit_code, ("mine", "LITERAL") in of_topics(named)) == (0, True)
    nonsense = invoke("acls", "generate", *words, "--offset-topic", "mine", "--output-topic", "a b")
    assert (nonsense.exit_code, "a b can't be a topic" in nonsense.stderr) == (2, True)


def test_a_placeholder_in_a_config_is_no_topic(invoke: Invoke) -> None:
    """Rights were asked for on a topic of the name `${file:/run/topics:orders}`."""
    there = worker_world()
    there.connect.add("orders", {"offsets.storage.topic": "${file:/run/topics:orders}"}).topics |= {"lines"}
    found = asked(invoke, there, "-u", W0)
    assert of_topics(found) == {("lines", "LITERAL"): True}
    assert "which only its worker can resolve; rights on it are not part of this" in found.stderr
    named = asked(invoke, there, "-u", W0, "--dedicated-topic", "offsets-{connector}")
    assert [each["code"] for each in named.json()["errors"]] == ["connectors_unknown"]
    assert ("offsets-orders", "LITERAL") in of_topics(named)


@pytest.mark.parametrize("verb", ["check", "apply"])
def test_no_worker_is_asked_where_no_principal_is_named(invoke: Invoke, verb: str) -> None:
    """`doctor` asked a worker for the topics of 500 connectors, and found then that nobody was named."""
    there = worker_world(records=config_records(*created("orders", 1, config={"tasks.max": "2"})))
    there.connect.add("orders")
    asked: list[Call] = []
    there.connect.before("*", asked.append)
    found = invoke("acls", verb, "-b", "localhost:1", "-g", "g", "--all", "-u", W0, doors=there.doors())
    assert (found.exit_code, "no principal given for role worker" in found.stderr) == (2, True)
    assert asked == []
