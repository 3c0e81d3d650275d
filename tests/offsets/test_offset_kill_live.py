"""kill -9 of an offsets write on a real broker: all of it is there or nothing, and the next run says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eosctl.kafka.topics.store import KafkaTopicClient
from eosctl.sandbox.stack import Stack
from tests.conftest import Invoke
from tests.faults.child import Child
from tests.faults.proxy import Api, Fate, held
from tests.sandbox_fixtures import wait_until

pytestmark = pytest.mark.live

OFFSETS = 2_000


@pytest.mark.parametrize(("fate", "there"), [(Fate.CUT, 0), (Fate.PASS, OFFSETS)], ids=["nothing", "all"])
def test_all_of_it_or_nothing(
    stack: Stack, topics: KafkaTopicClient, invoke: Invoke, unique: str, tmp_path: Path, fate: Fate, there: int
) -> None:
    """The end of the transaction is held until the process is gone, and then lost, or taken."""
    topic, path = f"killed-{unique}", tmp_path / "offsets.ndjson"
    topics.create(topic, partitions=5, replication_factor=1, config={"cleanup.policy": "compact"})
    keys = [f'["{unique}",{{"f":{number}}}]' for number in range(OFFSETS)]
    records = [{"topic": topic, "partition": 0, "key": key, "value": "{}"} for key in keys]
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    words = ["-g", unique, "offsets", "import", str(path), "--store", topic, "--force-running", "--yes", "-o", "json"]

    def written() -> int:
        return len(topics.read(topic, newest_per_key=True).records)

    with held(stack.bootstrap_servers, Api.END_TXN, 1) as (proxy, gate):
        child = Child(["-b", proxy.address, *words], tmp_path)
        gate.wait_closed()
        assert (any(bound.end for bound in topics.bounds(topic)), written()) == (True, 0)
        child.kill()
        gate.open(fate)
        if fate is Fate.PASS:
            wait_until(lambda: written() == OFFSETS, what="the broker to end the transaction")
    where = ["-b", stack.bootstrap_servers]
    ended = invoke(*where, "-g", unique, "fence", f"eosctl-offsets-{unique}-writer", "--yes")
    assert ended.exit_code == 0, ended.stderr
    assert written() == there

    again = invoke(*where, *words)
    assert again.exit_code == 0, again.stderr
    assert "offsets-import of" in again.stderr
    assert "was cut off before its end was seen" in again.stderr
    assert again.json()["data"]["summary"].get("written", 0) == OFFSETS - there
    assert written() == OFFSETS
