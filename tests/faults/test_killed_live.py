"""kill -9 of eosctl in the middle of writes that have no steps of their own to walk through.

At every step of the others it is done elsewhere: `offsets switch` tests/ops/test_offset_switch.py, `rescue`
tests/ops/test_rescue_ops.py, `upgrade apply` tests/ops/test_upgrade_apply.py and test_upgrade_live.py, `offsets
migrate` tests/ops/test_migrate_resume.py and tests/spark/test_migrate_killed_live.py, writes of offsets (merge, set,
reset, import, restore) tests/ops/test_offset_kill_live.py, the audit log tests/commands/test_audit.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from eosctl.core.transactions import TransactionDescription
from eosctl.kafka.transaction_admin import NativeTransactionAdmin
from eosctl.sandbox.stack import Stack
from tests.conftest import Invoke
from tests.faults.child import Child
from tests.faults.proxy import Api, Fate, held

pytestmark = pytest.mark.live


def outcomes(invoke: Invoke) -> list[str]:
    """What the audit log says of the writes so far, in their order."""
    return [str(row["outcome"]) for row in invoke("history", "-o", "json").json()["data"]["rows"]]


def test_a_fence(
    lone_broker: Stack, admin: NativeTransactionAdmin, invoke: Invoke, unique: str, tmp_path: Path
) -> None:
    """Some ids are fenced, others not; the next run fences all."""
    ids = [f"{unique}-{number}" for number in range(400)]
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
