"""The secured sandbox: a certificate, users with passwords, and one settings file per user.

What is secret lies in files that only their owner may read; it is in no command line, no log and no state file.
"""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from eosctl.core.java.properties import properties_text
from eosctl.errors import EosctlError

SUPER_USER = "super"
_MODULES = "org.apache.kafka.common.security"
# the launcher of every Java starts keytool like this, and a Java that came as a wheel has the class but no launcher
_KEYTOOL = ("-XX:TieredStopAtLevel=1", "-m", "java.base/sun.security.tools.keytool.Main")
_PASSWORD_VARIABLE = "EOSCTL_STORE_PASSWORD"  # noqa: S105 - a variable's name


class SecureListener(Struct, frozen=True):
    """A second listener, SASL_SSL, and an authorizer that grants its users nothing but what ACLs allow.

    `passwords` are of SCRAM (both hashes) and PLAIN users; `super_users` among them need no ACL. The certificate is for
    `hosts`. With `unsecured_tokens` whoever can reach the listener is whom an unsigned token names: for tests alone.
    """

    passwords: Mapping[str, str]
    super_users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ("127.0.0.1", "localhost")
    unsecured_tokens: bool = False
    __repr__ = object.__repr__  # the passwords are not shown

    @classmethod
    def with_users(cls, users: Iterable[str]) -> SecureListener:
        """Make a listener for the super user and `users`, with new passwords."""
        passwords = {user: secrets.token_urlsafe(18) for user in (SUPER_USER, *users)}
        return cls(passwords, super_users=(SUPER_USER,))

    def properties(self, files: SecureFiles, among_themselves: str) -> dict[str, str]:
        """Return the broker properties of the listener and the authorizer; brokers are the user `among_themselves`."""
        plain = "".join(f' user_{user}="{password}"' for user, password in self.passwords.items())
        listener = "listener.name.sasl_ssl"
        return {
            f"{listener}.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
            + ",OAUTHBEARER" * self.unsecured_tokens,
            f"{listener}.plain.sasl.jaas.config": f"{_MODULES}.plain.PlainLoginModule required{plain};",
            f"{listener}.scram-sha-256.sasl.jaas.config": f"{_MODULES}.scram.ScramLoginModule required;",
            f"{listener}.scram-sha-512.sasl.jaas.config": f"{_MODULES}.scram.ScramLoginModule required;",
            **(_unsecured_tokens(listener) if self.unsecured_tokens else {}),
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(files.keystore),
            "ssl.keystore.password": files.keystore_password(),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(files.ca),
            "ssl.client.auth": "requested",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": ";".join(f"User:{user}" for user in (among_themselves, *self.super_users)),
        }

    def format_arguments(self) -> list[str]:
        """Return StorageTool's arguments for the SCRAM users, known from the first start."""
        return [
            word
            for user, password in self.passwords.items()
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
            for word in ("--add-scram", f"{mechanism}=[name={user},password={password}]")
        ]


def _unsecured_tokens(listener: str) -> dict[str, str]:
    validator = f"{_MODULES}.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
    return {
        f"{listener}.oauthbearer.sasl.jaas.config": f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required;",
        f"{listener}.oauthbearer.sasl.server.callback.handler.class": validator,
    }


class SecureFiles(Struct, frozen=True):
    """The files of a secured stack, below a directory that only its owner may enter."""

    directory: Path

    @property
    def keystore(self) -> Path:
        """The brokers' key and certificate (PKCS12)."""
        return self.directory / "broker.p12"

    @property
    def ca(self) -> Path:
        """The certificate with which clients verify the brokers (PEM)."""
        return self.directory / "ca.pem"

    def keystore_password(self) -> str:
        """Return the password of the keystore, which the first call makes."""
        path = self.directory / "broker.p12.password"
        if not path.exists():
            write_private(path, secrets.token_urlsafe(18))
        return path.read_text(encoding="ascii")

    def command_config(self, user: str) -> Path:
        """Return the path of the client.properties of `user`."""
        return self.directory / f"{user}.properties"

    def write(self, listener: SecureListener, java: Path) -> None:
        """Make the directory, the certificate and a client.properties per user. Raise EosctlError."""
        self.directory.mkdir(mode=0o700)
        self._issue_certificate(listener.hosts, java)
        for user, password in listener.passwords.items():
            write_private(self.command_config(user), properties_text(self.client_properties(user, password)))

    def client_properties(self, user: str, password: str) -> dict[str, str]:
        """Return the client settings of `user`: TLS and SCRAM-SHA-512."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": f'{_MODULES}.scram.ScramLoginModule required username="{user}" password="{password}";',
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.ca),
        }

    def _issue_certificate(self, hosts: Iterable[str], java: Path) -> None:
        """Make a key and its self-signed certificate with Java's own keytool."""
        names = ",".join(f"{'ip' if host[-1].isdigit() else 'dns'}:{host}" for host in hosts)
        store = ["-alias", "broker", "-keystore", str(self.keystore), "-storepass:env", _PASSWORD_VARIABLE]
        usage = ["-ext", f"SAN={names}", "-ext", "BC:c=ca:true", "-ext", "KU:c=digitalSignature,keyCertSign"]
        key = ["-keyalg", "EC", "-groupname", "secp256r1", "-validity", "3650", "-dname", "CN=eosctl sandbox"]
        self._keytool(java, "-genkeypair", *key, *usage, "-storetype", "PKCS12", *store)
        self._keytool(java, "-exportcert", "-rfc", "-file", str(self.ca), *store)

    def _keytool(self, java: Path, *words: str) -> None:
        environ = {"LC_ALL": "C.UTF-8", _PASSWORD_VARIABLE: self.keystore_password()}
        done = subprocess.run(
            [str(java), *_KEYTOOL, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, env=environ
        )
        if done.returncode:
            raise EosctlError(f"making the sandbox's certificate failed: {(done.stderr or done.stdout)[-500:]}")


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may ever read, even while it is written."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
