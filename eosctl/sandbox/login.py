"""The logins of a sandbox: one user for a plain one; a certificate and several users for a secured one.

What is secret lies in files that only their owner may read; it is in no command line, no log and no state file.
Passwords are made for this sandbox.

Workers require the one user by Connect's own basic authentication. Brokers may require it, too, at each listener that
has no other login; then nobody but its owner reaches anything of the sandbox.

A secured sandbox has a certificate, users with passwords, and one settings file per user.
"""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from eosctl.core.clients.settings import ClientSettings, Secret
from eosctl.core.java.properties import properties_text
from eosctl.core.workers.access import ConnectAccess
from eosctl.core.workers.url import basic_authorization, parse_worker_url
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


USER = "eosctl"
BROKERS_PROTOCOL = "SASL_PLAINTEXT"
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_BASIC = "org.apache.kafka.connect.rest.basic.auth.extension"


class SandboxLogin(Struct, frozen=True):
    """The login files below `directory`; a missing file means that no such login is required."""

    directory: Path

    @property
    def rest_password_file(self) -> Path:
        """The password of the workers' REST interface, as `--connect-password-file` takes it."""
        return self.directory / "rest.password"

    @property
    def netrc(self) -> Path:
        """The same for `curl --netrc-file`."""
        return self.directory / "rest.netrc"

    @property
    def command_config(self) -> Path:
        """The client.properties with which one logs in to the brokers."""
        return self.directory / "client.properties"

    @property
    def asks_at_workers(self) -> bool:
        """True if the workers require a password."""
        return self.rest_password_file.exists()

    @property
    def asks_at_brokers(self) -> bool:
        """True if the brokers require a password."""
        return self.command_config.exists()

    def make_for_workers(self) -> None:
        """Make a new password for the workers that start next."""
        password = secrets.token_urlsafe(18)
        self._write(self.rest_password_file, password)
        self._write(self.netrc, f"machine 127.0.0.1 login {USER} password {password}\n")
        users = self.directory / "rest.users"
        self._write(users, properties_text({USER: password}))
        quoted = str(users).replace("\\", "\\\\").replace('"', '\\"')
        self._write(self._jaas, f'KafkaConnect {{ {_BASIC}.PropertyFileLoginModule required file="{quoted}"; }};\n')

    def make_for_brokers(self) -> None:
        """Make a new password for the brokers that start next."""
        self._write(self._brokers_password, secrets.token_urlsafe(18))
        self._write(self.command_config, properties_text(self.client_properties()))

    def worker_properties(self) -> dict[str, str]:
        """Return the properties of a worker that requires the password."""
        return {"rest.extension.classes": f"{_BASIC}.BasicAuthSecurityRestExtension"} if self.asks_at_workers else {}

    def worker_options(self) -> list[str]:
        """Return the JVM options of such a worker."""
        return [f"-Djava.security.auth.login.config={self._jaas}"] if self.asks_at_workers else []

    def broker_properties(self, listeners: Iterable[str]) -> dict[str, str]:
        """Return the properties of a broker that requires the password on these listeners and uses it with brokers."""
        if not self.asks_at_brokers:
            return {}
        password = self._brokers_password.read_text(encoding="ascii")
        jaas = f'{_PLAIN} required username="{USER}" password="{password}" user_{USER}="{password}";'
        found = {"sasl.mechanism.inter.broker.protocol": "PLAIN", "sasl.mechanism.controller.protocol": "PLAIN"}
        for name in (f"listener.name.{each.lower()}" for each in listeners):
            found |= {f"{name}.sasl.enabled.mechanisms": "PLAIN", f"{name}.plain.sasl.jaas.config": jaas}
        return found

    def client_properties(self) -> dict[str, str]:
        """Return the settings of a Java client that logs in to the brokers; none if no login is required."""
        if not self._brokers_password.exists():
            return {}
        password = self._brokers_password.read_text(encoding="ascii")
        return {
            "security.protocol": BROKERS_PROTOCOL,
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{_PLAIN} required username="{USER}" password="{password}";',
        }

    def client_settings(self, bootstrap_servers: str) -> ClientSettings:
        """Return the login settings of eosctl's own clients."""
        servers = tuple(bootstrap_servers.split(","))
        if not self.asks_at_brokers:
            return ClientSettings(servers)
        password = Secret(self._brokers_password.read_text(encoding="ascii"))
        return ClientSettings(servers, BROKERS_PROTOCOL, "PLAIN", USER, password)

    def librdkafka_settings(self) -> dict[str, str]:
        """Return the login settings of librdkafka."""
        if not self.asks_at_brokers:
            return {}
        password = self._brokers_password.read_text(encoding="ascii")
        return {
            "security.protocol": BROKERS_PROTOCOL,
            "sasl.mechanism": "PLAIN",
            "sasl.username": USER,
            "sasl.password": password,
        }

    def connect_access(self, urls: Iterable[str]) -> ConnectAccess:
        """Return how eosctl authenticates to the workers at `urls`."""
        named = frozenset(parse_worker_url(url).origin for url in urls)
        if not self.asks_at_workers:
            return ConnectAccess(named=named)
        return ConnectAccess(username=USER, password=Secret(self._rest_password()), named=named)

    def rest_headers(self) -> Mapping[str, str]:
        """Return the header with the password for a worker; none if no login is required."""
        if not self.asks_at_workers:
            return {}
        return {"Authorization": basic_authorization(USER, self._rest_password()).reveal()}

    def environ(self) -> dict[str, str]:
        """Return the variables with which eosctl authenticates to workers and brokers."""
        found = {}
        if self.asks_at_brokers:
            found["EOSCTL_COMMAND_CONFIG"] = str(self.command_config)
        if self.asks_at_workers:
            found |= {"EOSCTL_CONNECT_USERNAME": USER, "EOSCTL_CONNECT_PASSWORD_FILE": str(self.rest_password_file)}
        return found

    @property
    def _jaas(self) -> Path:
        return self.directory / "rest.jaas"

    @property
    def _brokers_password(self) -> Path:
        return self.directory / "brokers.password"

    def _rest_password(self) -> str:
        return self.rest_password_file.read_text(encoding="ascii")

    def _write(self, path: Path, text: str) -> None:
        self.directory.mkdir(mode=0o700, exist_ok=True)
        write_private(path, text)
