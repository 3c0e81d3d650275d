"""Aborted records of a config topic, and what real workers make of them: the prediction is held against the fact."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from confluent_kafka import Producer

from eosctl.core.workers.modes import Mode
from eosctl.sandbox.settings import GroupSpec
from eosctl.sandbox.stack import Stack
from tests.conftest import Invoke
from tests.envelope import envelope_of
from tests.hanging_transactions import offsets
from tests.sandbox_fixtures import PATIENCE_S, FileSource, added_group, group_flags, rest, wait_until

pytestmark = pytest.mark.live


def abort(stack: Stack, topic: str, records: Mapping[str, object]) -> None:
    """Writes `records` in a transaction that is aborted, as that of a leader which is killed in mid-write."""
    producer = Producer(
        {"bootstrap.servers": stack.bootstrap_servers, "transactional.id": f"killed-{topic}", "log_level": 0}
    )
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    for key, value in records.items():
        producer.produce(topic, key=key.encode(), value=json.dumps(value).encode(), partition=0)
    assert producer.flush(PATIENCE_S) == 0
    producer.abort_transaction(PATIENCE_S)
    wait_until(lambda: len(set(offsets(stack, topic))) == 1, what="the abort marker")


def mend(source: FileSource) -> None:
    """What the plan says of a connector that exists."""
    source.stop_and_wait()
    source.put()
    source.set_state("resume")
    source.wait_running()


def test_what_comes_alive_on_the_way_back_is_named_and_can_be_mended(
    three_brokers: Stack, invoke: Invoke, unique: str, tmp_path: Path
) -> None:
    """The steps for a connector that exists used to leave aborted task configs and task-count records the newest."""
    topic, worker = f"{unique}-configs", f"{unique}-worker-0"
    with added_group(three_brokers, GroupSpec(unique)) as (url,):
        flags = [*group_flags(three_brokers, unique), "-o", "json"]

        def source(name: str) -> FileSource:
            path = tmp_path / name
            path.write_text("line\n")
            return FileSource(url, name, path, topic=f"{unique}-{name}")

        def config_of(each: FileSource, **more: str) -> dict[str, object]:
            return {"properties": {**each.config(), "name": each.name, **more}}

        def coming_alive() -> list[str]:
            outcome = invoke("upgrade", "plan", "--to", "disabled", "--hard", *flags)
            document = envelope_of(outcome, "upgrade-plan", outcome.exit_code)
            named = [each["connector"] for each in document["data"]["hard"]["aborted_configs"]]
            gates = {gate["id"]: gate["status"] for gate in document["data"]["gates"]}
            assert gates["no_aborted_records"] == ("fail" if named else "pass")
            return sorted(named)

        kept, mended, ghost, gone = (source(name) for name in ("kept", "mended", "ghost", "gone"))
        for each in (kept, mended):
            each.put()
            each.wait_running()
        assert coming_alive() == []
        aborted: dict[str, object] = {
            "connector-kept": config_of(kept, topic="elsewhere"),
            "connector-mended": config_of(mended, topic="elsewhere"),
            "task-mended-0": config_of(mended, topic="elsewhere"),
            "commit-mended": {"tasks": 1},
            "tasks-fencing-mended": {"task-count": 5},
            "connector-ghost": config_of(ghost),
            "connector-gone": config_of(gone),
        }
        abort(three_brokers, topic, aborted)

        replayed = envelope_of(invoke("task-counts", "replay", "--topic", *flags), "task-counts-replay")["data"]
        assert replayed["differs_when_uncommitted"] == ["ghost", "gone", "kept", "mended"]
        assert {each["key"]: each["newest"] for each in replayed["aborted_records"]} == dict.fromkeys(aborted, True)
        counts = envelope_of(invoke("task-counts", "validate", *flags), "task-counts-validate")["data"]["rows"]
        assert {row["connector"]: row["recorded"] for row in counts} == {"kept": 1, "mended": 1}
        assert coming_alive() == ["ghost", "gone", "kept", "mended"]

        three_brokers.restart_node(worker)
        assert sorted(rest(f"{url}/connectors")) == ["kept", "mended"], "enabled: aborted records are not read"
        mended.wait_running()
        mend(mended)
        rest(f"{url}/connectors", "POST", {"name": "gone", "config": gone.config(), "initial_state": "STOPPED"})
        rest(f"{url}/connectors/gone", "DELETE")
        assert coming_alive() == ["ghost", "kept"]

        three_brokers.restart_node(worker, mode=Mode.DISABLED)
        assert sorted(rest(f"{url}/connectors")) == ["ghost", "kept", "mended"]
        topics = {name: rest(f"{url}/connectors/{name}/config")["topic"] for name in ("kept", "mended")}
        assert topics == {"kept": "elsewhere", "mended": mended.topic}
        ghost.wait_running()
