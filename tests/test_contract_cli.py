"""The command line's contract: every leaf on a real stack.

The key sets are literal on purpose: fields may be added to a shape, never renamed or removed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from eosctl.sandbox.operations import Zombie
from eosctl.sandbox.stack import Stack
from tests.command_tree import leaves
from tests.conftest import Invoke
from tests.envelope import envelope_of
from tests.sandbox_fixtures import FileSource, wait_until

if TYPE_CHECKING:
    from tests.migrate.spark.warm_jvm import WarmJvm

PARTITION = {"topic", "partition"}
CELL = {"topic", "partition", "offset", "timestamp_ms", "value"}
FENCE = {
    "": {"transactional_id", "coordinator", "before", "after", "outcome", "error"},
    "before": {"state", "producer_id", "producer_epoch", "transaction_timeout_ms", "age_ms"},
}
TXN = {
    "": {
        *("transactional_id", "state", "producer_id", "producer_epoch", "coordinator", "transaction_timeout_ms"),
        *("started_ms", "age_ms", "partitions", "owner"),
    },
    "owner": {"kind", "connector", "task", "application"},
}
PRODUCER = {"": {"topic", "partition", "producer_id", "producer_epoch", "coordinator_epoch", "start_offset"}}
WORKER = {
    "": {"url", "member_id", "leader", "version", "health", "config_offset", "assigned", "mode", "evidence"},
    "assigned": {"connectors", "tasks"},
}
OFFSET = {
    "": {"connector", "source_partition", "key", "stores", "effective", "age_ms", "flags"},
    "stores": {"global", "dedicated"},
    "stores.global": CELL,
    "effective": {"documented", "runtime"},
}
OFFSET_VERSION = {"": {"connector", "source_partition", "key", *CELL, "tombstone", "state", "jumped_from"}}
OFFSET_WRITE = {
    "": {"key", "connector", "source_partition", "action", "reason", "before", "after", "target"},
    "target": PARTITION,
}
TASK_COUNT = {
    "": {
        *("connector", "recorded", "record_offset", "newest_commit_offset", "task_count", "pending_fencing"),
        *("would_fence", "alive_ids", "findings"),
    }
}
RIGHT = {
    "": {
        *("role", "operation", "resource_type", "resource_name", "pattern_type", "permission", "when", "note"),
    }
}
RECORD_LINE = {"topic", "partition", "offset", "timestamp_ms", "key", "value"}
REPLAYED = {
    *("config", "target_state", "task_count", "task_ids", "inconsistent", "pending_fencing", "task_count_record"),
    "task_config_generation",
}


@dataclass(frozen=True, slots=True)
class Good:
    """A command line, the kind it answers with, and the keys of its rows (by dotted path; none: no rows asked for)."""

    line: str
    kind: str
    keys: dict[str, set[str]] | None = None
    exit_code: int = 0
    knows_cluster: bool = True


# in this order: the later ones need what the earlier ones made
GOOD = [
    Good("workers list", "workers-list", WORKER),
    Good("workers probe", "workers-probe", WORKER),
    Good("offsets list", "offsets-list", OFFSET),
    Good("offsets get --connector {name}", "offsets-get", OFFSET),
    Good("offsets log --connector {name}", "offsets-log", OFFSET_VERSION),
    Good(
        "offsets merge --connector {name} --into dedicated --dedicated-topic {own} --dry-run",
        "offsets-merge-plan",
        OFFSET_WRITE,
    ),
    Good(
        "offsets merge --connector {name} --into dedicated --dedicated-topic {own} --yes",
        "offsets-merge-result",
        OFFSET_WRITE,
    ),
    Good(
        "offsets diff --connector {name} --dedicated-topic {own}",
        "offsets-diff",
        {"": {"connector", "source_partition", "key", "status"}},
    ),
    Good("offsets restore {backup} --dry-run", "offsets-restore-plan", OFFSET_WRITE),
    Good("offsets restore {backup} --yes", "offsets-restore-result", OFFSET_WRITE),
    Good("offsets export --store global --connector {name} {export}", "offsets-export"),
    Good(
        "offsets snapshot",
        "offsets-snapshot",
        {"": {"taken", "taken_ms", "outcome", "file", "topics", "records", "tombstones", "removed", "unseen", "error"}},
    ),
    Good("task-counts list", "task-counts-list", TASK_COUNT),
    Good("task-counts show {name}", "task-counts-show", TASK_COUNT),
    Good("task-counts replay --topic", "task-counts-replay"),
    Good("task-counts replay {export}", "task-counts-replay", knows_cluster=False),
    Good("connectors trace {name}", "connectors-trace"),
    Good("acls generate --connector {name}", "acls-generate", RIGHT, knows_cluster=False),
    Good("acls check --connector {name} --principal User:w", "acls-check"),
    Good("upgrade plan --to enabled", "upgrade-plan"),
    Good("upgrade status", "upgrade-status", {"": {"worker", "leader", "version", "health", "mode", "evidence"}}),
    Good("fence {id} --dry-run", "fence-plan", FENCE),
    Good("fence --connector {name} --yes", "fence-result", FENCE | {"after": {"producer_id", "producer_epoch"}}),
    Good("txn list", "txn-list", TXN),
    Good(
        "txn applications",
        "txn-applications",
        {"": {"application", "kind", "sure", "could_be", "ids", "open", "timeout_ms_max", "grown_by", "remarks"}},
    ),
    Good("txn describe {id}", "txn-describe", TXN),
    Good("txn coordinator {id}", "txn-coordinator", {"": {"transactional_id", "hash", "partition", "coordinator"}}),
    Good("txn log {id}", "txn-log", {"": {"transactional_id", "state", "producer_id", "producer_epoch"}}),
    Good("txn producers --topic {topic}", "txn-producers", PRODUCER),
    Good("txn hanging --topic {topic}", "txn-hanging"),
    Good(
        "history",
        "history",
        {"": {"time", "time_ms", "user", "command", "target", "plan_digest", "outcome", "exit_code", "undo"}},
        knows_cluster=False,
    ),
    Good("explain", "explain", {"": {"code", "type", "meaning", "next"}}, knows_cluster=False),
    Good("schema", "schema-list", {"": {"kind", "what"}}, knows_cluster=False),
    Good("profile list", "profile-list", knows_cluster=False),
    Good("profile show", "profile-show", {"": {"name", "value"}}, knows_cluster=False),
    Good("profile show --origin", "profile-origins", {"": {"name", "value", "origin"}}, knows_cluster=False),
    Good("profile check", "profile-check", {"": {"check", "subject", "status", "found", "reason"}}),
    Good(
        "exporter rules",
        "exporter-rules",
        {"": {"alert", "severity", "for_s", "expr", "summary", "description", "runbook"}},
        knows_cluster=False,
    ),
    Good("exporter dashboard", "exporter-dashboard", knows_cluster=False),
    Good("completion bash", "completion", knows_cluster=False),
    Good("sandbox status --name none", "sandbox-status", knows_cluster=False),
    Good("sandbox down --name none", "sandbox-down", knows_cluster=False),
]
# run by tests of their own: here (Spark, abort, validate), and in tests/audit, tests/sandbox and tests/commands
ELSEWHERE = {
    "acls apply",
    "audit",
    "metrics",
    *("profile set", "profile use", "profile import"),
    *("offsets migrate", "offsets verify", "txn abort", "txn complete", "task-counts validate"),
    *(
        "connectors check",
        *("connectors create", "connectors apply", "connectors diff", "connectors move"),
        *("connectors stop", "connectors pause", "connectors resume", "connectors restart"),
        "doctor",
        "watch",
        "offsets import",
        "offsets lint",
        "offsets switch",
        "offsets set",
        "offsets reset",
        *("task-counts write", "task-counts clean"),
        "rescue",
        "upgrade apply",
        "upgrade verify",
    ),
}
WITH_A_SANDBOX = {"demo", "rehearse", "sandbox up", "sandbox logs"}


def test_every_leaf_is_in_this_contract() -> None:
    listed = {leaf for leaf in leaves() if any(f"{good.line} ".startswith(f"{leaf} ") for good in GOOD)}
    assert set(leaves()) - listed - ELSEWHERE - WITH_A_SANDBOX == set()
    assert len(listed) >= 20


def _member(row: Any, path: str) -> Any:
    for step in filter(None, path.split(".")):
        row = row[step]
    return row


@pytest.mark.live
def test_every_leaf_answers_with_its_kind_and_shape(
    invoke: Invoke, target_flags: list[str], stopped: FileSource, tmp_path: Path
) -> None:
    words = {
        "name": stopped.name,
        "id": f"connect-eos-{stopped.name}-0",
        "topic": stopped.topic,
        "own": "offsets-{connector}",
        "export": str(tmp_path / "export.ndjson"),
    }
    cluster_id = None
    for good in GOOD:
        outcome = invoke(*(word.format(**words) for word in good.line.split()), *target_flags, "-o", "json")
        document = envelope_of(outcome, good.kind, good.exit_code)
        cluster_id = cluster_id or document["target"]["kafka_cluster_id"]
        if good.knows_cluster:
            assert document["target"]["kafka_cluster_id"] == cluster_id, good.line
        rows = document["data"]["rows"]
        assert rows or good.keys is None, good.line
        own = [row for row in rows if row.get("connector", stopped.name) == stopped.name]
        for path, keys in (good.keys or {}).items():
            assert keys <= set(_member(own[0], path)), (good.line, path)
        if good.kind == "offsets-merge-result":
            words["backup"] = document["data"]["backup"]
            assert document["data"]["undo"] == f"eosctl offsets restore {words['backup']}"
            assert set(document["data"]["summary"]["counts"]) == {"write", "delete", "keep", "conflict"}
    assert cluster_id
    for line in Path(words["export"]).read_text(encoding="utf-8").splitlines():
        assert set(json.loads(line)) - {"headers"} == RECORD_LINE


@pytest.mark.live
def test_shapes_beside_rows(invoke: Invoke, target_flags: list[str], stopped: FileSource) -> None:
    replay = envelope_of(invoke("task-counts", "replay", "--topic", *target_flags, "-o", "json"), "task-counts-replay")
    state = replay["data"]["state"]
    assert {"offset", "connectors", "ignored"} <= set(state)
    assert set(state["connectors"][stopped.name]) >= REPLAYED
    upgrade = envelope_of(invoke("upgrade", "plan", "--to", "disabled", *target_flags, "-o", "json"), "upgrade-plan")
    assert [set(each) >= {"mode", "steps"} for each in upgrade["data"]["passes"]] == [True, True]
    assert set(upgrade["data"]["passes"][0]["steps"][0]) >= {"worker", "actions", "gates"}
    assert all(set(gate) >= {"id", "status", "evidence", "fix"} for gate in upgrade["data"]["gates"])
    outcome = invoke("task-counts", "validate", *target_flags, "-o", "json")
    found = envelope_of(outcome, "task-counts-validate", outcome.exit_code)  # other tests' connectors have findings
    assert outcome.exit_code in (0, 3)
    assert set(found["data"]["rows"][0]) >= TASK_COUNT[""]


@pytest.mark.live
def test_abort_refuses_what_its_coordinator_knows(
    invoke: Invoke, target_flags: list[str], stack: Stack, stopped: FileSource, unique: str
) -> None:
    start = ["txn", "abort", "--topic", stopped.topic, "--partition", "0", *target_flags, "-o", "json"]
    with Zombie(stack.bootstrap_servers, f"zombie-{unique}", topic=stopped.topic, record=b"x"):

        def open_transaction() -> Any:
            found = invoke("txn", "producers", "--topic", stopped.topic, *target_flags, "-o", "json").json()
            return [row for row in found["data"]["rows"] if row["start_offset"] is not None]

        [producer] = wait_until(open_transaction, what="the zombie's transaction")
        start += ["--start-offset", str(producer["start_offset"])]
        envelope_of(invoke(*start, "--yes"), "txn-abort-plan", 6)
        envelope_of(invoke(*start, "--force", "--dry-run"), "txn-abort-plan")
        envelope_of(invoke(*start, "--force", "--yes"), "txn-abort-result")


@pytest.mark.live
@pytest.mark.spark
def test_migrate_and_verify(
    invoke: Invoke,
    target_flags: list[str],
    stopped: FileSource,
    tmp_path: Path,
    warm: WarmJvm,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in warm.environ.items():
        monkeypatch.setenv(name, value)
    plan_file = str(tmp_path / "plan.json")
    which = ["--connector", stopped.name, "--dedicated-topic", "moved-{connector}", "--master", "local[1]"]
    migrate = ("offsets", "migrate", *target_flags, "--timeout", "300s", "-o", "json")
    document = envelope_of(invoke(*migrate, *which, "--plan-out", plan_file), "offsets-migrate-plan")
    assert document["data"]["plan_file"] == plan_file
    document = envelope_of(invoke(*migrate, "--plan", plan_file, "--yes"), "offsets-migrate-result")
    assert {"backup", "undo"} <= set(document["data"])
    [entry] = map(json.loads, (tmp_path / "state" / "eosctl" / "audit.jsonl").read_text(encoding="utf-8").splitlines())
    assert (entry["command"], entry["exit_code"]) == ("offsets migrate", 0)
    assert entry["summary"] == document["data"]["summary"]
    for path, keys in OFFSET_WRITE.items():
        assert keys <= set(_member(document["data"]["rows"][0], path))
    verified = invoke("offsets", "verify", plan_file, *target_flags, "-o", "json")
    assert envelope_of(verified, "offsets-verify")["target"]["kafka_cluster_id"]
