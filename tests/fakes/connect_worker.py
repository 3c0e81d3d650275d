"""The REST interface of one worker of FakeConnect: a ConnectWorker as RestConnectWorker is one, errors included."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eosctl.connect.sender import REBALANCE_PATIENCE_S
from eosctl.connect.signing import ALGORITHM_HEADER, SIGNATURE_HEADER
from eosctl.core.workers.connector_entry import ConnectorEntry, read_entry
from eosctl.deadline import Deadline
from eosctl.errors import (
    AlreadyExistsError,
    ConnectError,
    NotFoundError,
    UnauthorizedError,
    UnreachableError,
    UnsupportedError,
)
from tests.fakes.connectors import STOPPED, TARGETS, FakeConnector

if TYPE_CHECKING:
    from tests.fakes.connect import FakeConnect

UNSUPPORTED = "The connector does not support exactly-once semantics with the provided configuration."
OBJECTION = "This worker does not have exactly-once source support enabled."
_BACKOFF_S = 0.25


@dataclass
class FakeConnectWorker:
    """One worker; all of a group share its connectors."""

    group: FakeConnect
    url: str
    deadline: Deadline

    def root(self) -> Mapping[str, str]:
        with self._asked("root"):
            return {"version": self.group.version, "commit": "abc", "kafka_cluster_id": self.group.kafka_cluster_id}

    def date_ms(self) -> int | None:
        with self._asked("date_ms"):
            ahead_s = self.group.clocks_ahead_s.get(self._member, 0.0)
            return None if ahead_s is None else int(self.group.time.now_s + ahead_s) * 1000

    def health(self) -> str:
        with self._asked("health"):
            return "starting" if self._member in self.group.starting else self.group.health

    def connectors(self) -> Mapping[str, ConnectorEntry]:
        with self._asked("connectors"):
            known = self.group.connectors.items()
            return {name: read_entry(connector.expanded(name)) for name, connector in known if connector.state}

    def connector_status(self, connector: str) -> ConnectorEntry:
        with self._asked("connector_status", connector):
            known = self.group.connectors.get(connector)
            if known is None or not known.state:
                raise NotFoundError(f"{self.url}: No status found for connector {connector}")
            return read_entry({"status": known.expanded(connector)["status"]})

    def connector_config(self, connector: str) -> Mapping[str, str]:
        with self._asked("connector_config", connector):
            self._wait_for_rebalance()
            return dict(self._known(connector).config)

    def topics(self, connector: str) -> Sequence[str]:
        with self._asked("topics", connector):
            known = self.group.connectors.get(connector)
            return sorted(known.topics) if known else ()

    def put_connector_config(self, connector: str, config: Mapping[str, str]) -> None:
        with self._asked("put_connector_config", connector, config):
            self._require_valid(config)
            self.group.put(connector, config)

    def create_connector(self, connector: str, config: Mapping[str, str], state: str) -> None:
        with self._asked("create_connector", connector, config, state):
            self._require_valid(config)
            if connector in self.group.connectors:
                raise AlreadyExistsError(f"{self.url}: Connector {connector} already exists")
            self.group.create(connector, config, state)

    def _require_valid(self, config: Mapping[str, str]) -> None:
        if "connector.class" not in config:
            raise ConnectError(f"Connector config {dict(config)} contains no connector type")
        self._wait_for_rebalance()
        if errors := self._errors(config):
            told = "\n".join(["", *errors.values()])
            many = f"contains the following {len(errors)} error(s):"
            raise ConnectError(f"400: Connector configuration is invalid and {many}{told}")

    def delete_connector(self, connector: str) -> None:
        with self._asked("delete_connector", connector):
            self._wait_for_rebalance()
            self._known(connector)
            self.group.delete(connector)

    def set_state(self, connector: str, verb: str) -> None:
        with self._asked("set_state", connector, verb):
            if verb not in TARGETS:
                raise UnsupportedError(f"{self.url} does not offer PUT /connectors/{connector}/{verb}")
            self._known(connector)
            self.group.set_target(connector, TARGETS[verb])

    def restart(self, connector: str, *, only_failed: bool = True) -> None:
        with self._asked("restart", connector, only_failed):
            self._wait_for_rebalance()
            self._known(connector)
            self.group.restart(connector, only_failed=only_failed)

    def offsets(self, connector: str) -> Sequence[Mapping[str, object]]:
        with self._asked("offsets", connector):
            self._known(connector)
            return self.group.offsets.read(connector)

    def alter_offsets(self, connector: str, offsets: Sequence[Mapping[str, object]]) -> None:
        with self._asked("alter_offsets", connector, offsets):
            self._wait_for_rebalance()
            known = self._known(connector)
            if known.target != STOPPED or known.task_count:
                raise ConnectError("400: Connectors must be in the STOPPED state before their offsets can be modified")
            if not offsets:
                raise ConnectError("400: Partitions / offsets need to be provided for an alter offsets request")
            self.group.offsets.alter(connector, offsets)

    def validate(self, plugin: str, config: Mapping[str, str]) -> Mapping[str, object]:
        with self._asked("validate", plugin, config):
            wants = config.get("exactly.once.support")
            errors = {name: [text] for name, text in self._errors(config).items()}
            if wants == "required" and self._mode != "standalone":
                supports = "topic" not in config or "file" in config  # as FileStream does that has a topic
                told = [] if supports else [UNSUPPORTED]
                of_worker = [] if self._mode == "enabled" else [OBJECTION]
                errors["exactly.once.support"] = [*of_worker, *told, *errors.get("exactly.once.support", ())]
            names = {"exactly.once.support": wants, **{name: config.get(name) for name in errors}}
            values = [{"name": name, "value": value, "errors": errors.get(name, [])} for name, value in names.items()]
            values += [{"name": name, "errors": []} for name in self.group.definitions if name not in names]
            configs = [
                {
                    "definition": {"name": value["name"], **self.group.definitions.get(str(value["name"]), {})},
                    "value": value,
                }
                for value in values
            ]
            return {"name": plugin, "error_count": len(errors), "configs": configs}

    def plugins(self) -> Sequence[Mapping[str, object]]:
        with self._asked("plugins"):
            lacking = self.group.lacking.get(self._member, ())
            own = self.group.plugin_versions.get(self._member, {})
            listed = (each for each in self.group.plugins if each["class"] not in lacking)
            named = [{**each, "version": own.get(str(each["class"]), each.get("version"))} for each in listed]
            return [{name: value for name, value in each.items() if value is not None} for each in named]

    def fence(self, connector: str, headers: Mapping[str, str]) -> None:
        with self._asked("fence", connector, headers):
            self._check_signature(connector, headers)
            if self._member != self.group.leader:  # the request goes on to the leader, without its headers
                self._check_signature(connector, {})
            self._known(connector)
            self.group.fenced.append(connector)
            self.group.fence(connector)

    def _check_signature(self, connector: str, headers: Mapping[str, str]) -> None:
        """`DistributedHerder.requestNotSignedProperly`: the body of this request is empty."""
        given, algorithm = headers.get(SIGNATURE_HEADER), headers.get(ALGORITHM_HEADER)
        where = f"PUT /connectors/{connector}/fence at {self.url} answered"
        if given is None or algorithm is None:
            raise ConnectError(f"{where} 400: Internal request missing required signature")
        if algorithm != "HmacSHA256":
            raise ConnectError(f"{where} 400: This worker does not support the '{algorithm}' key signing algorithm")
        if base64.b64decode(given) != hmac.new(self.group.session_key, b"", "sha256").digest():
            raise UnauthorizedError(f"not allowed: {where} 403 (Internal request contained invalid signature.)")

    def _errors(self, config: Mapping[str, str]) -> dict[str, str]:
        """Property -> what speaks against its value: Connect's own checks, and those of the connector."""
        tasks = config.get("tasks.max", "1")
        told = f"Invalid value {tasks} for configuration tasks.max: Not a number of type INT"
        return ({} if tasks.isdecimal() else {"tasks.max": told}) | self.group.objections

    @property
    def _member(self) -> str:
        return self.group.forwarded.get(self.url, self.url)

    @property
    def _mode(self) -> str:
        return {**self.group.starting, **self.group.modes}[self._member]

    @contextmanager
    def _asked(self, call: str, *what: object) -> Iterator[None]:
        """One request, from when it is made until its answer is there."""
        self.deadline.check(f"waiting for the worker at {self.url}")
        with self.group.call(call, self.url, *what):
            if self.url in self.group.hidden:
                raise UnreachableError(f"the Connect worker at {self.url} can't be reached: no such host")
            if self._member in self.group.frozen:
                self.group.time.pass_until(self.deadline.at_s)
                raise UnreachableError(f"the Connect worker at {self.url} can't be reached: no answer in time")
            if self._member in self.group.down or self._member not in {**self.group.starting, **self.group.modes}:
                raise UnreachableError(f"the Connect worker at {self.url} can't be reached: Connection refused")
            yield

    def _wait_for_rebalance(self) -> None:
        """A worker answers 409 meanwhile, and RestConnectWorker asks again."""
        patience = Deadline.after(min(REBALANCE_PATIENCE_S, self.deadline.remaining_s()), self.deadline.clock)
        while self.group.rebalancing:
            if patience.remaining_s() <= _BACKOFF_S:
                raise ConnectError(f"{self.url}: Request cannot be completed because a rebalance is expected")
            patience.sleep(_BACKOFF_S)

    def _known(self, name: str) -> FakeConnector:
        if name not in self.group.connectors:
            raise NotFoundError(f"{self.url}: Connector {name} not found")
        return self.group.connectors[name]
