"""Incidents of rights: on a secured cluster an ACL is taken away."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not listed as re-exported
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from tests.conftest import Invoke
from tests.gameday.ground import ONE_BROKER, Ground
from tests.gameday.incident import Incident, Named, play
from tests.sandbox_fixtures import GROUP, PATIENCE_S, wait_until
from tests.secure_stack import SecureStack

pytestmark = pytest.mark.live


@pytest.fixture
def secured(secure_stack: SecureStack, invoke: Invoke, tmp_path: Path) -> Ground:
    """The group of `secure_stack`, as its super user sees it; the worker's file says who the workers are."""
    stack = secure_stack.stack
    more = {
        "bootstrap_server": stack.secure_bootstrap_servers,
        "command_config": stack.state.command_configs["super"],
        "worker_config": [stack.state.of_kind("worker")[0].config],
    }
    return Ground(stack, GROUP, invoke, tmp_path, ONE_BROKER, more)


@contextmanager
def output_not_writable(ground: Ground, name: str) -> Iterator[None]:
    """The connector's producer may no longer write to its topic."""
    scope = ["--connector", name, "--tasks", "1", "--output-topic", f"topic-{name}"]
    ground.eosctl("acls", "apply", *scope)
    with ground.source(name) as source:
        admin = AdminClient({"bootstrap.servers": ground.stack.bootstrap_servers, "log_level": 0})
        taken = AclBindingFilter(
            ResourceType.TOPIC, source.topic, ResourcePatternType.LITERAL, "User:producer", "*", AclOperation.WRITE,
            AclPermissionType.ALLOW,
        )  # fmt: skip
        [future] = admin.delete_acls([taken]).values()
        assert len(future.result(PATIENCE_S)) == 1
        wait_until(lambda: not admin.describe_acls(taken).result(PATIENCE_S), what="the ACL to be forgotten")
        source.append("two")
        wait_until(lambda: source.task_states() == ["FAILED"], what="the task to notice")
        yield


INCIDENT = Incident(
    "a producer may no longer write to its topic",
    output_not_writable,
    (Named("acl_missing", "producer User:producer", follows=("task_not_authorized",)),),
    ("eosctl acls apply --all", "eosctl connectors restart --failed {}"),
)


def test_it_is_named_and_the_printed_remedy_heals(secured: Ground, unique: str) -> None:
    play(INCIDENT, secured, unique)
