"""The login of a sandbox: one user, with passwords made for this sandbox, in files that only their owner may read.

Workers ask for it by Connect's own basic authentication. Brokers may ask for it, too, at each listener that has no
other login; then nobody but its owner reaches anything of the sandbox.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from eosctl.core.clients.settings import ClientSettings, Secret
from eosctl.core.java.properties import properties_text
from eosctl.core.workers.access import ConnectAccess
from eosctl.core.workers.url import basic_authorization, parse_worker_url
from eosctl.sandbox.secure import write_private

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
