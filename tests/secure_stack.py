"""The session's secured sandbox: a broker with a SASL_SSL listener and an authorizer, and a worker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from msgspec.structs import replace

from eosctl.core.acls.table import ROLES
from eosctl.sandbox.login import SecureListener
from eosctl.sandbox.operations import grant_roles, secured
from eosctl.sandbox.settings import StackSpec
from eosctl.sandbox.stack import Stack
from tests.sandbox_fixtures import sandbox

LOGIN_LASTS_S = 60


@dataclass(frozen=True, slots=True)
class SecureStack:
    """A broker with a SASL_SSL listener and an authorizer; `ca` is the PEM file that signed its certificate."""

    stack: Stack
    ca: Path
    passwords: dict[str, str]

    def client_properties(self, path: Path, user: str, *, mechanism: str = "SCRAM-SHA-512", password: str = "") -> Path:
        """Writes a Java client.properties for `user` to `path`."""
        module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
        path.write_text(
            "security.protocol=SASL_SSL\n"
            f"sasl.mechanism={mechanism}\n"
            f"sasl.jaas.config=org.apache.kafka.common.security.{module} required \\\n"
            f'    username="{user}" password="{password or self.passwords[user]}";\n'
            f"ssl.truststore.type=PEM\nssl.truststore.location={self.ca}\n"
        )
        path.chmod(0o600)
        return path


@pytest.fixture(scope="session")
def secure_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureStack]:
    """A secured broker and a worker in `enabled`; a user per role, `nobody`, and `application` without a right.

    `fencer` is what tests make of it. The plaintext listener is the super user's. On the other one a login lasts
    LOGIN_LASTS_S.
    """
    made = SecureListener.with_users(ROLES)
    passwords = {
        **made.passwords,
        "fencer": "fencer-pass",
        "nobody": "nobody-pässword",
        "application": "application-pass",
    }
    limit = {"connections.max.reauth.ms": str(LOGIN_LASTS_S * 1000)}
    listener = replace(made, passwords=passwords, unsecured_tokens=True)
    spec = secured(StackSpec(broker_config=limit), listener)

    def grant(stack: Stack) -> None:
        grant_roles(stack, spec.groups)

    with sandbox(spec, tmp_path_factory, name="secure", before_workers=grant) as stack:
        yield SecureStack(stack, stack.ca, passwords)
