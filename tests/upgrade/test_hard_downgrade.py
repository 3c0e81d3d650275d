"""`upgrade plan --to disabled --hard`: what is named to copy and to repair, what is not, and that the repair works."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pytest

from eosctl.core.offsets.findings import aborted_offsets
from eosctl.core.offsets.views import fold_store
from eosctl.core.records import Record
from eosctl.engine.stores import as_columns
from eosctl.errors import UnauthorizedError
from eosctl.offsets.files.importing import plan_import
from eosctl.offsets.files.offsets_file import parse_offsets_file
from tests.conftest import Invoke
from tests.core.offsets.stores import NO_SPOOL
from tests.envelope import envelope_of
from tests.fakes.config_topic import CONFIG_TOPIC, config_records, created
from tests.fakes.config_world import ConfigWorld, compacted

WHERE = ("-b", "localhost:1", "-g", "g")
OFFSETS = "connect-offsets"
KEY = b'["orders",{"f":1}]'


def offset(at: int, value: bytes | None, key: bytes = KEY) -> Record:
    return Record(OFFSETS, 0, at, 0, key, value)


def cluster(**changes: Any) -> ConfigWorld:
    """Two enabled workers; orders has offsets of its own, far has them on another cluster."""
    values: dict[str, Any] = {
        "records": config_records(*created("orders", 1, record=1)),
        "described": [compacted(CONFIG_TOPIC, 1), compacted(OFFSETS, 1)],
        "connectors": {"orders": "source", "far": "source", "plain": "source", "files": "sink"},
        "configs": {
            "orders": {"offsets.storage.topic": "own"},
            "far": {"producer.override.bootstrap.servers": "far:9092"},
            "plain": {"offsets.storage.topic": OFFSETS},
        },
        "offsets": [offset(1, b'{"n":1}'), offset(2, b'{"n":7}', b'["plain",{"f":1}]')],
        "modes": {"http://w1:8083": "enabled", "http://w2:8083": "enabled"},
    }
    return ConfigWorld(**{**values, **changes})


def hard(invoke: Invoke, there: ConfigWorld) -> Any:
    args = ("upgrade", "plan", "--to", "disabled", "--hard", *WHERE, "-o", "json")
    outcome = invoke(*args, **there.surroundings)
    return envelope_of(outcome, "upgrade-plan", outcome.exit_code)["data"]["hard"]


def test_the_commands_that_copy_offsets_are_named_per_connector(invoke: Invoke) -> None:
    rows = hard(invoke, cluster())["offsets"]
    assert {row["connector"]: (row["offsets_topic"], row["cluster"]) for row in rows} == {
        "orders": ("own", None),
        "far": (OFFSETS, "far:9092"),
    }
    commands = {row["connector"]: row["commands"] for row in rows}
    assert commands["orders"] == [
        "eosctl offsets switch --connector orders --to global",
        "eosctl offsets merge --connector orders --into global",
    ]
    assert f"--from {OFFSETS}@PROFILE" in commands["far"][0]


def test_both_variants_come_with_their_risks(invoke: Invoke) -> None:
    variants = hard(invoke, cluster())["variants"]
    assert [(each["name"], each["recommended"]) for each in variants] == [("two_step", True), ("one_step", False)]
    assert all(each["steps"] and each["risks"] for each in variants)


def test_aborted_records_come_with_their_repair(invoke: Invoke) -> None:
    ghost = Record(CONFIG_TOPIC, 0, 20, -1, b"connector-ghost", b'{"properties":{}}')
    changed = Record(CONFIG_TOPIC, 0, 21, -1, b"target-state-orders", b'{"state":"PAUSED"}')
    there = cluster(aborted=[ghost, changed], aborted_offsets=[offset(3, b'{"n":2}'), offset(4, b"{}", b'["x",{}]')])
    plan = hard(invoke, there)
    assert plan["aborted_offsets"]["records"] == [
        {"topic": OFFSETS, "partition": 0, "key": KEY.decode(), "value": '{"n":1}'},
        {"topic": OFFSETS, "partition": 0, "key": '["x",{}]', "value": None},
    ]
    assert "--keep-partitions --rewrite" in plan["aborted_offsets"]["commands"][1]
    assert {each["connector"]: each["exists"] for each in plan["aborted_configs"]} == {"ghost": False, "orders": True}
    steps = {each["connector"]: [step.split(",")[0] for step in each["steps"]] for each in plan["aborted_configs"]}
    made_and_deleted = [
        'POST /connectors with the name ghost and "initial_state": "STOPPED"',
        "DELETE /connectors/ghost",
    ]
    in_place = [
        "eosctl connectors stop orders",
        "GET /connectors/orders/config",
        "eosctl connectors resume orders; then eosctl connectors stop or pause",
    ]
    assert steps == {"ghost": made_and_deleted, "orders": in_place}


def test_importing_the_records_of_the_plan_repairs_the_topic(invoke: Invoke) -> None:
    """An import left out what the store has already, so that the aborted record stayed the newest."""
    there = cluster(aborted_offsets=[offset(3, b'{"n":2}')])
    lines = "\n".join(json.dumps(each) for each in hard(invoke, there)["aborted_offsets"]["records"])
    store = as_columns(fold_store(there.topics.read(OFFSETS)))
    file = parse_offsets_file(io.BytesIO(lines.encode()), NO_SPOOL, name="repair.ndjson")
    assert not any(write.sends() for write in plan_import(file, store, NO_SPOOL, keep=True).writes)
    [write] = plan_import(file, store, NO_SPOOL, keep=True, rewrite=True).writes
    assert (write.sends(), write.reason, write.after) == (True, "rewritten", b'{"n":1}')
    there.topics.put(OFFSETS, KEY, write.after)
    everything = there.topics.read(OFFSETS, isolation="read_uncommitted", newest_per_key=True)
    assert aborted_offsets(everything, there.topics.read(OFFSETS, newest_per_key=True)) == ()


def test_what_was_not_seen_is_said(invoke: Invoke) -> None:
    plan = hard(invoke, cluster(faults={OFFSETS: UnauthorizedError("not allowed")}))
    assert plan["unknown"] == ["aborted offsets: not allowed"]
    assert plan["aborted_offsets"]["records"] == []


@pytest.mark.parametrize("target", ["preparing", "enabled"])
def test_hard_is_about_an_older_connect(invoke: Invoke, target: str) -> None:
    outcome = invoke("upgrade", "plan", "--to", target, "--hard", *WHERE, **cluster().surroundings)
    assert outcome.exit_code == 2
    assert "--to disabled" in outcome.stderr


def test_text(invoke: Invoke, golden: Callable[[str, str], None]) -> None:
    there = cluster(
        aborted=[Record(CONFIG_TOPIC, 0, 20, -1, b"connector-ghost", b'{"properties":{}}')],
        aborted_offsets=[offset(3, b'{"n":2}')],
    )
    args = ("upgrade", "plan", "--to", "disabled", "--hard", *WHERE)
    outcome = invoke(*args, **there.surroundings)
    _before, heading, after = outcome.stdout.partition("to an older Connect\n")
    golden("upgrade/hard.txt", heading + after)
