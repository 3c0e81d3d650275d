"""fence over TLS and SCRAM as a principal that may do only some of it: the missing right is named, and grantable."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not listed as re-exported
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from tests.sandbox_fixtures import PATIENCE_S, wait_until

pytestmark = pytest.mark.live

Invoke = Any


def grant(stack: Any, operation: str, transactional_id: str) -> None:
    """What the printed kafka-acls line does."""
    admin = AdminClient({"bootstrap.servers": stack.bootstrap_servers, "enable.metrics.push": False})
    acl = (
        ResourceType.TRANSACTIONAL_ID, transactional_id, ResourcePatternType.LITERAL, "User:fencer", "*",
        AclOperation[operation], AclPermissionType.ALLOW,
    )  # fmt: skip
    (future,) = admin.create_acls([AclBinding(*acl)]).values()
    future.result(PATIENCE_S)
    wanted = AclBindingFilter(*acl)
    wait_until(lambda: admin.describe_acls(wanted).result(PATIENCE_S), what="the ACL to be known to the broker")


def test_rights_one_by_one(invoke: Invoke, secure_stack: Any, tmp_path: Path, unique: str) -> None:
    stack = secure_stack.stack
    created = invoke("fence", unique, f"{unique}-b", "--create-unknown", "--yes", "-b", stack.bootstrap_servers)
    assert created.exit_code == 0, created.stderr
    config = secure_stack.client_properties(tmp_path / "client.properties", "fencer")
    flags = ["-b", stack.secure_bootstrap_servers, "--command-config", str(config), "--yes", "-o", "json"]

    def fence(*ids: str) -> Any:
        return invoke("fence", *ids, *flags)

    nothing = fence(unique)
    assert nothing.exit_code == 5, nothing.stderr
    both = "--allow-principal User:fencer --operation Describe --operation Write"
    assert f"{both} --transactional-id {unique}" in nothing.stderr

    grant(stack, "DESCRIBE", unique)
    readable = fence(unique)
    assert readable.exit_code == 5, readable.stderr
    assert f"--operation Write --transactional-id {unique}" in readable.stderr
    assert readable.json()["data"]["rows"][0]["before"]["state"] == "Empty"

    grant(stack, "WRITE", unique)
    one_of_two = fence(unique, f"{unique}-b")
    assert one_of_two.exit_code == 7, one_of_two.stderr
    assert [row["outcome"] for row in one_of_two.json()["data"]["rows"]] == ["fenced", "failed"]
    assert fence(unique).exit_code == 0


def test_a_wrong_password_is_an_authentication_failure(
    invoke: Invoke, secure_stack: Any, tmp_path: Path, unique: str
) -> None:
    config = secure_stack.client_properties(tmp_path / "client.properties", "fencer", password="wrong")
    servers = secure_stack.stack.secure_bootstrap_servers
    outcome = invoke("fence", unique, "-b", servers, "--command-config", str(config), "--yes", "-o", "json")
    assert (outcome.exit_code, outcome.json()["errors"][0]["code"]) == (5, "not_authorized")
