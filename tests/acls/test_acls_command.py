"""`eosctl acls` as a person runs it, on an ACL store and a config topic in memory."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from eosctl.core.acls.binding import Acl
from eosctl.core.acls.table import CONNECT_ROLES
from eosctl.errors import BrokerError, UnauthorizedError, UnreachableError, UnsupportedError
from tests.conftest import Invoke, Outcome
from tests.envelope import envelope_of
from tests.fakes.acls import FakeAclStore
from tests.fakes.clock import FakeTime
from tests.fakes.config_topic import config_records, created
from tests.fakes.config_world import ConfigWorld

WHERE = ("-b", "localhost:1", "-g", "g")
OFFLINE = ("-g", "g", "--connector", "orders", "--tasks", "1", "--output-topic", "out")


def doors(store: FakeAclStore, **config: str) -> dict[str, Any]:
    """A cluster whose config topic knows the source `orders` (three tasks at most) and a sink."""
    sink = {"connector.class": "FileStreamSinkConnector", "topics": "out"}
    pairs = [*created("orders", 1, record=2, config={"tasks.max": "3", **config}), *created("files", 1, config=sink)]
    return ConfigWorld(records=config_records(*pairs), acls=store).doors()


def needed(invoke: Invoke, *words: str, principal: str = "User:w", **more: Any) -> list[Acl]:
    """The ACLs that `acls generate` names."""
    rows = invoke("acls", "generate", *words, "--principal", principal, "-o", "json", **more).json()["data"]["rows"]
    return [
        Acl(row["principal"], row["operation"], row["resource_type"], row["resource_name"], row["pattern_type"])
        for row in rows
    ]


def check(invoke: Invoke, store: FakeAclStore, *words: str) -> Outcome:
    options = ("--connector", "orders", "--output-topic", "out", "--principal", "User:w", *words)
    return invoke("acls", "check", *WHERE, *options, "-o", "json", doors=doors(store))


def codes(outcome: Outcome) -> list[tuple[str, str, list[str]]]:
    """The findings about rights: code, resource, operations."""
    rows = [row for row in outcome.json()["data"]["rows"] if row["severity"] != "info"]
    return [(row["code"], row["evidence"]["resource_name"], row["evidence"]["operations"]) for row in rows]


# -- generate


def test_generate_needs_no_cluster(invoke: Invoke) -> None:
    outcome = invoke("acls", "generate", *OFFLINE, "--role", "producer", "--to", "enabled")
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    assert outcome.stdout.splitlines()[1].split()[:5] == ["producer", "-", "WRITE", "TransactionalId", "g-orders-0"]
    prepared = invoke("acls", "generate", *OFFLINE, "--role", "producer", "--to", "preparing", "-o", "json").json()
    assert {row["resource_name"] for row in prepared["data"]["rows"]} == {"out"}


def test_the_lines_grant_what_the_rows_say(invoke: Invoke) -> None:
    lines = invoke("acls", "generate", *OFFLINE, "--principal", "User:w", "--format", "kafka-acls").stdout.splitlines()
    granted = set()
    for line in lines:
        words = shlex.split(line)
        assert words[:5] == ["kafka-acls.sh", "--bootstrap-server", "HOST:PORT", "--add", "--allow-principal"]
        operations = [words[at + 1] for at, word in enumerate(words) if word == "--operation"]
        resource = " ".join(words[words.index("--operation") + 2 * len(operations) :])
        granted |= {(words[5], operation.upper(), resource) for operation in operations}
    flags = {"Topic": "--topic {}", "TransactionalId": "--transactional-id {}", "Group": "--group {}"}
    asked = {
        (acl.principal, acl.operation.replace("_", ""), flags[acl.resource_type].format(acl.name))
        for acl in needed(invoke, *OFFLINE)
    }
    assert granted == asked


def test_yaml_for_terraform(invoke: Invoke) -> None:
    outcome = invoke("acls", "generate", *OFFLINE, "--prefixed", "--principal", "User:ü=1", "--format", "terraform")
    acls = yaml.safe_load(outcome.stdout)["acls"]
    assert len(acls) == outcome.stdout.count("principal:")  # YAML keeps one of two members of the same name
    assert len(acls) == len(set(needed(invoke, *OFFLINE, "--prefixed", principal="User:ü=1")))
    assert acls["User:ü=1/WRITE/TRANSACTIONAL_ID/PREFIXED/g-orders-"] == {
        "resource_type": "TRANSACTIONAL_ID", "resource_name": "g-orders-", "pattern_type": "PREFIXED",
        "principal": "User:ü=1", "host": "*", "operation": "WRITE", "permission": "ALLOW",
    }  # fmt: skip


def test_each_role_has_its_principal(invoke: Invoke, tmp_path: Path) -> None:
    """A distinguished name has equals signs, too; what is not said is in the worker's file."""
    worker = tmp_path / "worker.properties"
    jaas = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="{}" password="canary";'
    worker.write_text(
        "bootstrap.servers=k:1\ngroup.id=g\nsecurity.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n"
        f"sasl.jaas.config={jaas.format('connect')}\nproducer.sasl.jaas.config={jaas.format('writer')}\n"
    )
    worker.chmod(0o600)
    words = ["acls", "generate", *OFFLINE, "-w", str(worker), "--principal", "admin=User:CN=a,O=b", "-o", "json"]
    outcome = invoke(*words)
    found = {row["role"]: row["principal"] for row in outcome.json()["data"]["rows"]}
    assert found == {
        "worker": "User:connect", "producer": "User:writer", "consumer": "User:connect", "admin": "User:CN=a,O=b"
    }  # fmt: skip
    assert "canary" not in outcome.stdout + outcome.stderr
    every = needed(invoke, *OFFLINE, principal="User:CN=a,O=b")
    assert {acl.principal for acl in every} == {"User:CN=a,O=b"}


def test_tasks_and_topics_come_from_the_config_topic(invoke: Invoke) -> None:
    """tasks.max, not the one task that runs now, says which ids it may come to."""
    config = {"offsets.storage.topic": "own"}
    store = FakeAclStore()
    acls = needed(invoke, *WHERE, "--all", "--role", "producer", doors=doors(store, **config))
    assert {acl.name for acl in acls} == {"g-orders-0", "g-orders-1", "g-orders-2", "own"}


@pytest.mark.parametrize(
    ("words", "exit_code", "said"),
    [
        (["-g", "g", "--connector", "c"], 2, "how many tasks has c?"),
        (["-g", "g", "--connector", "c", "--tasks", "1", "--tasks", "2"], 2, "2 times --tasks for 1 connectors"),
        (["-g", "g", "--principal", "w"], 2, "'w' is no principal"),
        (["--connector", "c", "--tasks", "1"], 2, "no Connect group was named"),
        ([*WHERE, "--connector", "nope"], 1, "the group has no connector nope"),
    ],
)
def test_what_is_not_said_is_asked_for(invoke: Invoke, words: list[str], exit_code: int, said: str) -> None:
    outcome = invoke("acls", "generate", *words, doors=doors(FakeAclStore()))
    assert (outcome.exit_code, outcome.stdout) == (exit_code, "")
    assert said in outcome.stderr


def test_output_topics_that_nobody_named_are_missed(invoke: Invoke) -> None:
    outcome = invoke("acls", "generate", "-g", "g", "--connector", "c", "--tasks", "1")
    assert outcome.exit_code == 0
    assert "the topics: --output-topic NAME" in outcome.stderr


W0 = "http://w0:8083"


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
    assert (found.exit_code, found.stderr) == (0, "")
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
    there = worker_world(described=())
    there.connect.add("orders", {"tasks.max": "2", "topic": "lines"})
    where = ("-b", "localhost:1")
    found = asked(invoke, there, *where, "-u", W0)
    assert found.exit_code == 0, found.stderr
    assert {row["resource_name"] for row in found.json()["data"]["rows"]} == {
        "g-orders-0", "g-orders-1", "connect-offsets", "lines"
    }  # fmt: skip
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
    assert "the topics that orders write to are not known" in missing.stderr
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
    assert (named.stderr, ("offsets-orders", "LITERAL") in of_topics(named)) == ("", True)


# -- check


def test_nothing_is_wrong_where_every_right_is_there(invoke: Invoke) -> None:
    store = FakeAclStore()
    store.acls = needed(invoke, *WHERE, "--connector", "orders", "--output-topic", "out", doors=doors(store))
    outcome = check(invoke, store, "--strict")
    assert (outcome.exit_code, outcome.json()["data"]["rows"]) == (0, [])
    assert {right["verdict"] for right in outcome.json()["data"]["rights"]} == {"allowed"}


def test_each_right_that_is_missing_is_named_and_nothing_else(invoke: Invoke) -> None:
    """Of one principal per role: what another role has does not count."""
    store = FakeAclStore()
    users = [word for role in CONNECT_ROLES for word in ("--principal", f"{role}=User:{role}")]
    words = (*WHERE, "--connector", "orders", "--output-topic", "out", *users)
    rows = invoke("acls", "generate", *words, "-o", "json", doors=doors(store)).json()["data"]["rows"]
    every = [Acl(row["principal"], row["operation"], row["resource_type"], row["resource_name"]) for row in rows]
    for row, lost in zip(rows, every, strict=True):
        store.acls = [acl for acl in every if acl != lost]
        outcome = invoke("acls", "check", *words, "--strict", "-o", "json", doors=doors(store))
        exists = row["only_to_create"] and lost.name == "connect-configs"
        included = lost.operation == "DESCRIBE" and not (
            lost.principal == "User:admin" and lost.resource_type == "Topic"
        )
        expected = [] if exists or included else [("acl_missing", lost.name, [lost.operation])]
        assert (codes(outcome), outcome.exit_code) == (expected, 3 if expected else 0), lost


def test_a_deny_is_named_with_the_line_that_removes_it(invoke: Invoke) -> None:
    store = FakeAclStore()
    store.acls = needed(invoke, *WHERE, "--connector", "orders", "--output-topic", "out", doors=doors(store))
    store.acls.append(Acl("User:*", "ALL", "Topic", "ou", "PREFIXED", "DENY"))
    outcome = check(invoke, store)
    assert outcome.exit_code == 3
    (row,) = [row for row in outcome.json()["data"]["rows"] if row["severity"] == "error"]
    assert (row["code"], row["evidence"]["operations"]) == ("acl_denied", ["WRITE", "DESCRIBE"])
    assert row["fix"] == (
        "kafka-acls.sh --bootstrap-server localhost:1 --remove --force --deny-principal 'User:*' --operation All "
        "--topic ou --resource-pattern-type prefixed"
    )
    refused = invoke(
        "acls", "apply", *WHERE, "--connector", "orders", "--output-topic", "out", "--principal", "User:w", "--yes",
        doors=doors(store),
    )  # fmt: skip
    assert (refused.exit_code, store.created) == (6, [])
    assert row["fix"] in refused.stderr


def test_rights_for_single_hosts_are_warnings(invoke: Invoke) -> None:
    store = FakeAclStore([Acl("User:w", "ALL", "Group", "g", host="10.0.0.1")])
    words = ("acls", "check", *WHERE, "--role", "worker", "--principal", "User:w", "-o", "json")
    rows = invoke(*words, doors=doors(store)).json()["data"]["rows"]
    assert [row["code"] for row in rows if row["evidence"].get("resource_name") == "g"] == ["acl_for_some_hosts"]


def test_without_an_authorizer_there_is_nothing_to_grant(invoke: Invoke) -> None:
    store = FakeAclStore(refuse=UnsupportedError("the brokers have no authorizer"))
    outcome = check(invoke, store)
    assert (outcome.exit_code, [row["code"] for row in outcome.json()["data"]["rows"]]) == (0, ["no_authorizer"])
    words = ("acls", "apply", *WHERE, "--principal", "User:w", "--yes")
    assert invoke(*words, doors=doors(store)).exit_code == 1


def test_who_may_not_see_acls_is_told_so(invoke: Invoke) -> None:
    store = FakeAclStore(refuse=UnauthorizedError("not authorized", hint="kafka-acls.sh …"))
    assert check(invoke, store).exit_code == 5


@pytest.mark.parametrize("verb", ["check", "apply"])
def test_a_role_without_a_principal_is_a_question(invoke: Invoke, verb: str) -> None:
    outcome = invoke("acls", verb, *WHERE, "--principal", "worker=User:w", "--connector", "orders",
                     doors=doors(FakeAclStore()))  # fmt: skip
    assert outcome.exit_code == 2
    assert "who is the producer?" in outcome.stderr


# -- apply


def apply(invoke: Invoke, store: FakeAclStore, *words: str, **more: Any) -> Outcome:
    options = ("--connector", "orders", "--role", "producer", "--output-topic", "out", "--principal", "User:w")
    return invoke("acls", "apply", *WHERE, *options, *words, doors=doors(store), **more)


def test_only_what_is_missing_is_added_and_can_be_undone(invoke: Invoke) -> None:
    kept = Acl("User:w", "WRITE", "Topic", "out")
    store = FakeAclStore([kept])
    planned = apply(invoke, store, "--dry-run", "-o", "json")
    assert (planned.exit_code, store.created) == (0, [])
    done = apply(invoke, store, "--yes", "-o", "json")
    assert done.exit_code == 0
    assert kept not in store.created
    data = done.json()["data"]
    assert data["summary"]["counts"] == {"created": len(store.created), "kept": 2}  # WRITE includes DESCRIBE
    assert planned.json()["data"]["summary"]["counts"] == {"create": len(store.created), "keep": 2}
    assert all("--remove --force --allow-principal User:w" in line for line in data["undo"].splitlines())
    assert not [line for line in data["undo"].splitlines() if "Write" in line and "--topic out" in line]
    again = apply(invoke, store, "--yes", "-o", "json").json()
    assert (again["kind"], again["data"]["summary"]["counts"]) == ("acls-apply-plan", {"keep": len(store.created) + 2})


def test_nothing_is_added_unasked(invoke: Invoke) -> None:
    store = FakeAclStore()
    assert apply(invoke, store).exit_code == 6
    assert apply(invoke, store, input="n\n", can_ask=True).exit_code == 6
    assert store.created == []
    assert apply(invoke, store, input="y\n", can_ask=True).exit_code == 0
    assert store.created


def test_acls_that_changed_since_the_plan_stop_it(invoke: Invoke) -> None:
    """Somebody grants a right right after the plan was made."""
    store = FakeAclStore()
    granted = Acl("User:w", "WRITE", "Topic", "out")
    store.after("describe", lambda _call: setattr(store, "acls", [granted]))
    outcome = apply(invoke, store, "--yes")
    assert (outcome.exit_code, store.created) == (6, [])
    assert "changed since the plan" in outcome.stderr


def test_nothing_is_added_to_another_cluster_than_that_of_the_plan(invoke: Invoke) -> None:
    """One that lacks the very same rights, as a new one does."""

    class Moved(FakeAclStore):
        """The brokers behind the address are others after the plan."""

        asked = 0

        def cluster_id(self) -> str:
            self.asked += 1
            return super().cluster_id() if self.asked == 1 else "another-cluster"

    store = Moved()
    outcome = apply(invoke, store, "--yes")
    assert (outcome.exit_code, store.created) == (6, [])
    assert "changed since the plan" in outcome.stderr


def test_an_acl_that_is_refused_is_a_row_and_the_others_can_be_undone(invoke: Invoke, tmp_path: Path) -> None:
    """It ended the command after others were created: no rows, no undo, exit 1."""
    store = FakeAclStore()
    store.fail_next("acl", BrokerError("creating ACLs failed: POLICY_VIOLATION: not this one"), skip=1)
    outcome = apply(invoke, store, "--yes", "-o", "json")
    document = envelope_of(outcome, "acls-apply-result", 7)
    [failed] = [row for row in document["data"]["rows"] if row["action"] == "failed"]
    assert failed["error"]["message"] == "creating ACLs failed: POLICY_VIOLATION: not this one"
    assert document["data"]["summary"]["counts"] == {"created": len(store.created), "failed": 1}
    assert len(document["data"]["undo"].splitlines()) == len({(acl.resource_type, acl.name) for acl in store.created})
    assert [error["message"] for error in document["errors"] if error["severity"] == "error"] == [
        "creating ACLs failed: POLICY_VIOLATION: not this one"
    ]
    [entry] = [json.loads(line) for line in (tmp_path / "state/eosctl/audit.jsonl").read_text().splitlines()]
    assert (entry["outcome"], entry["undo"]) == ("partial", document["data"]["undo"])


def test_acls_of_which_none_was_added_end_with_the_reason(invoke: Invoke) -> None:
    store = FakeAclStore()
    store.fail_always("acl", UnauthorizedError("not authorized: creating ACLs failed", hint="ALTER is missing"))
    outcome = apply(invoke, store, "--yes")
    assert (outcome.exit_code, store.created) == (5, [])
    assert "ALTER is missing" in outcome.stderr


def test_an_acl_without_an_answer_is_looked_for(invoke: Invoke) -> None:
    """The brokers may have added it before the answer was lost."""
    store = FakeAclStore()
    store.fail_next("acl", UnreachableError("no answer"), skip=1, done=True)
    outcome = apply(invoke, store, "--yes", "-o", "json")
    assert outcome.exit_code == 0
    assert {row["action"] for row in outcome.json()["data"]["rows"]} == {"created"}


def test_what_the_cluster_does_not_show_is_not_called_created(invoke: Invoke) -> None:
    """It was asked again and again without a pause."""
    store, time = FakeAclStore(), FakeTime()
    store.late = 10**6
    outcome = apply(invoke, store, "--yes", "--timeout", "1s", "-o", "json", clock=time.clock())
    assert 5 <= len(time.slept) <= 20
    assert outcome.exit_code == 7
    assert {row["action"] for row in outcome.json()["data"]["rows"]} == {"unconfirmed"}
    assert outcome.json()["data"]["undo"]
