"""How the tests of `eosctl acls` call it: on an ACL store and a config topic in memory."""

from __future__ import annotations

from typing import Any

from eosctl.core.acls.lines import Acl
from tests.conftest import Invoke, Outcome
from tests.fakes.acls import FakeAclStore
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
