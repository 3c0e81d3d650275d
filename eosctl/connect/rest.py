"""One Connect worker's REST interface: a method per request, and its answer as a value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from urllib.parse import quote

from eosctl.connect.sender import WorkerSender
from eosctl.connect.session import ConnectSession
from eosctl.core.ids import connector_path
from eosctl.core.versions import HEALTH_SINCE, kafka_version
from eosctl.core.workers.access import CONNECTOR_CONFIG, SIGNATURE, ConnectAccess
from eosctl.core.workers.connector_entry import ConnectorEntry, read_entry
from eosctl.deadline import Deadline
from eosctl.errors import UnsupportedError


class RestConnectWorker:
    """Fits `eosctl.ports.ConnectWorker`; `url` is the normalised URL, without credentials."""

    def __init__(
        self,
        url: str,
        *,
        deadline: Deadline,
        access: ConnectAccess | None = None,
        session: ConnectSession | None = None,
    ) -> None:
        """Prepare the requests without connecting, as WorkerSender does, and with its errors."""
        self._sender = WorkerSender(url, deadline=deadline, access=access, session=session)
        self.url = self._sender.url

    def root(self) -> Mapping[str, str]:
        """Get version, commit and kafka_cluster_id (`GET /`); raises ConnectError when something else answers."""
        found = self._sender.mapping("GET", "/")
        if not isinstance(found.get("version"), str) or "kafka_cluster_id" not in found:
            raise self._sender.not_connect("GET /", "its answer has no version and no Kafka cluster id")
        return {key: str(value) for key, value in found.items()}

    def date_ms(self) -> int | None:
        """Return the time, in whole seconds, that the answer to `GET /` bears (Date); None where it bears none."""
        try:
            return int(parsedate_to_datetime(self._sender.done("GET", "/").date).timestamp()) * 1000
        except ValueError:
            return None

    def health(self) -> str:
        """Return `healthy`, `starting`, `unhealthy`, or `unknown` below Kafka 3.9 (`GET /health`, KIP-1017).

        A 404 comes from older versions, and from any version until the worker has registered its resources. From a
        version that can't be compared it is `unknown`, too.
        """
        answer = self._sender.exchange("GET", "/health")
        document = answer.json()
        if isinstance(document, dict) and document.get("status") in ("healthy", "starting", "unhealthy"):
            return str(document["status"])
        if answer.status != HTTPStatus.NOT_FOUND:
            raise self._sender.failure("GET /health", answer, None)
        return "starting" if (kafka_version(self.root()["version"]) or (0, 0)) >= HEALTH_SINCE else "unknown"

    def connectors(self) -> Mapping[str, ConnectorEntry]:
        """Get every connector by its name (`GET /connectors?expand=info&expand=status`)."""
        request = "GET /connectors"
        found = self._sender.mapping("GET", "/connectors?expand=info&expand=status")
        return {name: self._entry(request, entry) for name, entry in found.items()}

    def connector_status(self, connector: str) -> ConnectorEntry:
        """Get the entry without config and task set (`GET /connectors/{c}/status`). Raises NotFoundError."""
        target = f"{_path(connector)}/status"
        return self._entry(f"GET {target}", {"status": self._sender.mapping("GET", target)})

    def _entry(self, request: str, entry: object) -> ConnectorEntry:
        if not isinstance(entry, dict):
            raise self._sender.not_connect(request, "its answer does not map names to connectors")
        try:
            return read_entry(entry)
        except ValueError as exc:
            raise self._sender.not_connect(request, "its answer has a task without a number") from exc

    def connector_config(self, connector: str) -> Mapping[str, str]:
        """Get the connector's config (`GET /connectors/{c}/config`). Raises NotFoundError."""
        found = self._sender.mapping("GET", f"{_path(connector)}/config")
        return {key: str(value) for key, value in found.items() if value is not None}

    def topics(self, connector: str) -> Sequence[str]:
        """Get the topics it has written to since they were last reset (`GET /connectors/{c}/topics`, 2.5+)."""
        target = f"{_path(connector)}/topics"
        entry = self._sender.mapping("GET", target).get(connector)
        found = entry.get("topics") if isinstance(entry, dict) else None
        if not isinstance(found, list) or not all(isinstance(topic, str) for topic in found):
            raise self._sender.not_connect(f"GET {target}", "its answer holds no list of topics")
        return sorted(found)

    def put_connector_config(self, connector: str, config: Mapping[str, str]) -> None:
        """Create or change a connector (`PUT /connectors/{c}/config`); ConnectError has an invalid config's errors."""
        self._sender.require_trust(CONNECTOR_CONFIG)
        self._sender.done("PUT", f"{_path(connector)}/config", body=dict(config))

    def create_connector(self, connector: str, config: Mapping[str, str], state: str) -> None:
        """Create a connector in a state (`POST /connectors` with `initial_state`, 3.7+, KIP-980).

        Raises AlreadyExistsError; ConnectError has an invalid config's errors.
        """
        self._sender.require_trust(CONNECTOR_CONFIG)
        self._sender.done(
            "POST", "/connectors", body={"name": connector, "config": dict(config), "initial_state": state}
        )

    def delete_connector(self, connector: str) -> None:
        """Delete the connector (`DELETE /connectors/{c}`). Raises NotFoundError."""
        self._sender.done("DELETE", _path(connector))

    def set_state(self, connector: str, verb: str) -> None:
        """Request a state, reached after the answer (`PUT /connectors/{c}/stop|pause|resume`; stop: 3.5+, KIP-875)."""
        self._sender.done("PUT", f"{_path(connector)}/{quote(verb, safe='')}")

    def restart(self, connector: str, *, only_failed: bool = True) -> None:
        """Request a restart, done after the answer (`POST …/restart?includeTasks=true`, 3.0+, KIP-745)."""
        flag = "true" if only_failed else "false"
        self._sender.done("POST", f"{_path(connector)}/restart?includeTasks=true&onlyFailed={flag}")

    def offsets(self, connector: str) -> Sequence[Mapping[str, object]]:
        """Get `[{"partition": {…}, "offset": {…}|null}]` (`GET /connectors/{c}/offsets`, 3.5+)."""
        target = f"{_path(connector)}/offsets"
        found = self._sender.mapping("GET", target).get("offsets")
        if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
            raise self._sender.not_connect(f"GET {target}", "its answer holds no list of offsets")
        return found

    def alter_offsets(self, connector: str, offsets: Sequence[Mapping[str, object]]) -> None:
        """Change offsets, given as GET lists them, of a STOPPED connector (`PATCH /connectors/{c}/offsets`, 3.6+)."""
        self._sender.done("PATCH", f"{_path(connector)}/offsets", body={"offsets": [dict(entry) for entry in offsets]})

    def validate(self, plugin: str, config: Mapping[str, str]) -> Mapping[str, object]:
        """Validate `config`, with its `connector.class` (`PUT /connector-plugins/{plugin}/config/validate`)."""
        return self._sender.mapping(
            "PUT", f"/connector-plugins/{quote(plugin, safe='')}/config/validate", body=dict(config)
        )

    def plugins(self) -> Sequence[Mapping[str, object]]:
        """Get `[{"class", "type", "version"}]`, connectors only (`GET /connector-plugins`)."""
        found = self._sender.json("GET", "/connector-plugins")
        if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
            raise self._sender.not_connect("GET /connector-plugins", "its answer is not a list of plugins")
        return found

    def fence(self, connector: str, headers: Mapping[str, str]) -> None:
        """Fence at the leader (`PUT /connectors/{c}/fence`, 3.3+, internal); `headers` sign an empty body."""
        self._sender.require_trust(SIGNATURE)
        self._sender.done("PUT", f"{_path(connector)}/fence", headers=headers)


def _path(connector: str) -> str:
    if connector in ("", ".", ".."):
        raise UnsupportedError(
            f"the connector name {connector!r} can't be part of a URL",
            hint="No REST client can address this connector.",
        )
    return connector_path(connector)
