"""kill -9 of eosctl in the middle of writes that have no steps of their own to walk through.

At every step of the others it is done elsewhere: `offsets switch` tests/offsets/switch/test_offset_switch.py,
`rescue` tests/rescue/test_rescue_ops.py, `upgrade apply` tests/upgrade/roll/test_upgrade_apply.py and
test_upgrade_live.py, `offsets migrate` tests/migrate/test_migrate_resume.py and
tests/migrate/spark/test_migrate_killed_live.py, writes of offsets (merge, set, reset, import, restore)
tests/offsets/test_offset_kill_live.py, `task-counts write` tests/task_counts/test_task_count_write.py, `acls apply`
tests/acls/test_acls_killed.py, the audit log tests/state/test_audit_log.py.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from eosctl.core.ids import TransactionalId
from eosctl.core.records import OutRecord
from eosctl.core.transactions import TransactionDescription
from eosctl.kafka.topics.store import KafkaTopicClient
from eosctl.kafka.transactions.admin import NativeTransactionAdmin
from eosctl.sandbox.stack import Stack
from tests.conftest import Invoke
from tests.fakes.config_topic import created
from tests.faults.child import Child
from tests.faults.proxy import Api, Fate, held
from tests.sandbox_fixtures import wait_until
from tests.secure_stack import SecureStack

pytestmark = pytest.mark.live


def outcomes(invoke: Invoke) -> list[str]:
    """What the audit log says of the writes so far, in their order."""
    return [str(row["outcome"]) for row in invoke("history", "-o", "json").json()["data"]["rows"]]


def test_a_fence(
    lone_broker: Stack, admin: NativeTransactionAdmin, invoke: Invoke, unique: str, tmp_path: Path
) -> None:
    """Some ids are fenced, others not; the next run fences all."""
    ids = [TransactionalId(f"{unique}-{number}") for number in range(400)]
    file = tmp_path / "ids"
    file.write_text("".join(f"{each}\n" for each in ids))
    words = ["fence", "--from-file", str(file), "--create-unknown", "--yes", "-o", "json"]
    with held(lone_broker.bootstrap_servers, Api.INIT_PRODUCER_ID, 100) as (proxy, gate):
        child = Child([*words, "-b", proxy.address], tmp_path)
        gate.wait_closed()
        child.kill()
        gate.open(Fate.CUT)
    done = invoke(*words, "-b", lone_broker.bootstrap_servers)
    assert done.exit_code == 0, done.stderr
    described = admin.describe_transactions(ids)
    for row in done.json()["data"]["rows"]:
        told = described[row["transactional_id"]]
        assert isinstance(told, TransactionDescription)
        assert row["after"] == {"producer_id": told.producer_id, "producer_epoch": told.producer_epoch}
    assert outcomes(invoke) == ["killed", "ok"]


def test_a_task_count_record(
    lone_broker: Stack,
    topics: KafkaTopicClient,
    admin: NativeTransactionAdmin,
    invoke: Invoke,
    unique: str,
    tmp_path: Path,
) -> None:
    """The record is sent, but not committed; the next run is told how to end that."""
    config = f"{unique}-configs"
    topics.create(config, partitions=1, replication_factor=1, config={"cleanup.policy": "compact"})
    pairs = [*created("c", 2, record=2), ("commit-c", {"tasks": 0})]
    topics.write([OutRecord(config, key.encode(), json.dumps(value).encode(), partition=0) for key, value in pairs])
    ids = [TransactionalId(f"{unique}-c-{task}") for task in range(2)]
    assert all(answer.fault is None for answer in admin.fence(ids, transaction_timeout_ms=60_000))
    where = ["-g", unique, "--config-topic", config, "-o", "json", "-b"]
    words = ["task-counts", "write", "c", "--count", "3", "--no-fence", "--yes", *where]
    with held(lone_broker.bootstrap_servers, Api.END_TXN, 1) as (proxy, gate):
        child = Child([*words, proxy.address], tmp_path)
        gate.wait_closed()
        child.kill()
        gate.open(Fate.CUT)
    (backup,) = (tmp_path / "state").rglob("task-counts-write-*")
    assert json.loads(backup.read_text())["value"] == '{"task-count": 2}'
    refused = invoke(*words, lone_broker.bootstrap_servers)
    assert refused.exit_code == 6, refused.stderr
    command = f"eosctl fence --allow-leader connect-cluster-{unique}"
    assert command in refused.stderr
    ended = invoke(*shlex.split(command)[1:], "--yes", *where, lone_broker.bootstrap_servers)
    assert ended.exit_code == 0, ended.stderr
    done = invoke(*words, lone_broker.bootstrap_servers)
    assert done.exit_code == 0, done.stderr
    assert done.json()["data"]["rows"][0]["after"]["task_count"] == 3
    assert outcomes(invoke) == ["killed", "refused", "ok", "ok"]
    killed, *_others = invoke("history", "-o", "json").json()["data"]["rows"]
    assert killed["undo"] == "eosctl task-counts write --count 2 c"


@pytest.mark.parametrize("fate", [Fate.CUT, Fate.PASS])
def test_acls(secure_stack: SecureStack, invoke: Invoke, unique: str, tmp_path: Path, fate: Fate) -> None:
    """None is there, or all, and the next run sees which; the killed one's undo takes them away."""
    servers = secure_stack.stack.bootstrap_servers
    scope = ["--connector", "c", "--tasks", "2", "--role", "producer", "--output-topic", f"{unique}-out"]
    where = [*scope, "--principal", f"User:{unique}", "-g", unique, "-o", "json", "-b"]
    words = ["acls", "apply", "--yes", *where]
    with held(servers, Api.CREATE_ACLS, 1) as (proxy, gate):
        child = Child([*words, proxy.address], tmp_path)
        gate.wait_closed()
        child.kill()
        gate.open(fate)
        if fate is Fate.PASS:
            wait_until(lambda: invoke("acls", "check", *where, servers).exit_code == 0, what="the broker to have them")
    done = invoke(*words, servers)
    assert done.exit_code == 0, done.stderr
    actions = {row["action"] for row in done.json()["data"]["rows"]}
    assert actions == ({"keep"} if fate is Fate.PASS else {"created"})
    assert invoke("acls", "check", *where, servers).exit_code == 0
    assert outcomes(invoke) == (["killed"] if fate is Fate.PASS else ["killed", "ok"])
    killed, *_others = invoke("history", "-o", "json").json()["data"]["rows"]
    assert f"--allow-principal User:{unique}" in killed["undo"]
