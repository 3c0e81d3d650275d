"""The user `fencer` at a secure listener: eosctl's commands as that user, and the ACLs that it is granted.

Whatever a command prints, logs or keeps in its state directory is searched for the passwords that it was given; a
printed `kafka-acls` line is parsed and applied as it stands.
"""

from __future__ import annotations

import base64
import json
import logging
import shlex
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not listed as re-exported
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from tests.sandbox_fixtures import PATIENCE_S, wait_until
from tests.secure_stack import SecureStack

Invoke = Any
USER = "fencer"
PLACEHOLDER = "<admin.properties>"
_OPERATIONS = {name.title().replace("_", ""): name for name in AclOperation.__members__}
_RESOURCES = {
    "--transactional-id": ResourceType.TRANSACTIONAL_ID,
    "--topic": ResourceType.TOPIC,
    "--group": ResourceType.GROUP,
    "--cluster": ResourceType.BROKER,
}
ALL_OF_USER = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, f"User:{USER}", None, AclOperation.ANY, AclPermissionType.ANY  # type: ignore[arg-type]  # None is any
)  # fmt: skip


def token(subject: str, *, lifetime_s: int = 3600) -> str:
    """An unsigned JWT, which the broker's unsecured validator takes."""
    now_s = int(time.time())
    claims = {"sub": subject, "iat": now_s - 7200, "exp": now_s + lifetime_s}
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in ({"alg": "none"}, claims)]
    return b".".join([*parts, b""]).decode()


@dataclass
class Scene:
    """One user at the secure listener, and its ACLs, which the super user of the plaintext one grants."""

    invoke: Invoke
    secure: SecureStack
    directory: Path
    unique: str
    logged: Callable[[], str]
    admin: AdminClient
    canaries: set[str] = field(default_factory=set)

    def config(self, *, mechanism: str = "SCRAM-SHA-512", user: str = USER, password: str = "", **more: str) -> Path:
        """A client.properties; `more` adds or replaces properties (dots as underscores)."""
        path = self.directory / "client.properties"
        self.canaries.add(password or self.secure.passwords[user])
        self.secure.client_properties(path, user, mechanism=mechanism, password=password)
        if mechanism == "OAUTHBEARER":
            file = self.directory / "token"
            file.write_text(token(user))
            file.chmod(0o600)
            more = {
                "sasl_jaas_config": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;",
                "sasl_oauthbearer_token_endpoint_url": file.as_uri(),
            } | more
        with path.open("a") as text:
            text.writelines(f"{name.replace('_', '.')}={value}\n" for name, value in more.items())
        return path

    def run(self, *words: str, config: Path | None = None, servers: str | None = None) -> Any:
        """One command through the secure listener; no password may appear anywhere."""
        target = ["-b", servers or self.secure.stack.secure_bootstrap_servers]
        outcome = self.invoke(*words, *target, "--command-config", str(config or self.config()), "-vv")
        kept = [path.read_text(errors="replace") for path in (self.directory / "state").rglob("*") if path.is_file()]
        said = outcome.stdout + outcome.stderr + self.logged() + "".join(kept)
        assert not [canary for canary in self.canaries if canary in said]
        assert "Traceback" not in said
        return outcome

    def super(self, *words: str) -> Any:
        """One command of the super user."""
        return self.invoke(*words, "-b", self.secure.stack.bootstrap_servers)

    def apply(self, line: str) -> None:
        """Does what a kafka-acls line says; only the file of the admin's settings may be left to fill in."""
        words = shlex.split(line)
        assert words[:5] == [
            "kafka-acls.sh", "--bootstrap-server", self.secure.stack.secure_bootstrap_servers,
            "--command-config", PLACEHOLDER,
        ]  # fmt: skip
        assert words[5:8] == ["--add", "--allow-principal", f"User:{USER}"]
        rest, operations = words[8:], []
        while rest[:1] == ["--operation"]:
            operations.append(_OPERATIONS[rest[1]])
            rest = rest[2:]
        kind = _RESOURCES[rest[0]]
        name = "kafka-cluster" if kind is ResourceType.BROKER else rest[1]
        assert operations
        assert len(rest) == (1 if kind is ResourceType.BROKER else 2)
        self.grant(kind, name, *operations)

    def apply_hint(self, outcome: Any, needs: str) -> None:
        """Applies the lines under the one hint that names `needs` ("WRITE on TransactionalId")."""
        (hint,) = {entry["hint"] for entry in outcome.json()["errors"] if needs in str(entry["hint"])}
        head, *lines = hint.splitlines()
        assert head.startswith(f"Missing: {needs}")
        for line in lines:
            if line.startswith("kafka-acls.sh"):
                self.apply(line)

    def grant(self, kind: ResourceType, name: str, *operations: str) -> None:
        bindings = [
            AclBinding(
                kind, name, ResourcePatternType.LITERAL, f"User:{USER}", "*", AclOperation[operation],
                AclPermissionType.ALLOW,
            )
            for operation in operations
        ]  # fmt: skip
        for future in self.admin.create_acls(bindings).values():
            future.result(PATIENCE_S)
        wait_until(lambda: set(bindings) <= set(self.acls()), what="the ACLs to be known to the broker")

    def revoke_all(self) -> None:
        for future in self.admin.delete_acls([ALL_OF_USER]).values():
            future.result(PATIENCE_S)
        wait_until(lambda: not self.acls(), what="the ACLs to be forgotten")

    def acls(self) -> list[AclBinding]:
        """The user's ACLs as the broker's authorizer has them: it learns of them a moment after the controller."""
        found: list[AclBinding] = self.admin.describe_acls(ALL_OF_USER).result(PATIENCE_S)
        return found

    def topic(self, name: str, **config: str) -> str:
        """Creates a topic of one partition, and waits until the broker knows it."""
        (future,) = self.admin.create_topics([NewTopic(name, 1, 1, config=config)]).values()
        future.result(PATIENCE_S)
        wait_until(lambda: name in self.admin.list_topics(timeout=PATIENCE_S).topics, what=f"topic {name}")
        return name

    def known_ids(self, *ids: str) -> tuple[str, ...]:
        """Makes the coordinators know some ids."""
        assert self.super("fence", *ids, "--create-unknown", "--yes").exit_code == 0
        return ids


@pytest.fixture
def scene(
    invoke: Invoke, secure_stack: SecureStack, tmp_path: Path, unique: str, caplog: pytest.LogCaptureFixture
) -> Iterator[Scene]:
    """The user `fencer` with no right at all, before and after."""
    caplog.set_level(logging.DEBUG)
    admin = AdminClient({"bootstrap.servers": secure_stack.stack.bootstrap_servers, "log_level": 0})
    made = Scene(invoke, secure_stack, tmp_path, unique, lambda: caplog.text, admin)
    made.revoke_all()
    yield made
    made.revoke_all()


def error(outcome: Any) -> str:
    """The one error, with its hint."""
    (entry,) = [entry for entry in outcome.json()["errors"] if entry["severity"] == "error"]
    return f"{entry['message']}\n{entry['hint']}"
