"""The group's connectors, as far as rights need them: from the config topic, else from a worker."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from eosctl.app import App
from eosctl.core.configs.fold import ConnectorState
from eosctl.core.java.numbers import java_number
from eosctl.core.workers.connector_entry import plugin_type
from eosctl.errors import EosctlError, NotFoundError, UsageError
from eosctl.group.gather import in_turn, no_answer
from eosctl.group.topics.config import read_config_topic


class KnownConnectors(Struct, frozen=True):
    """By name; None where they were not read, or could not be."""

    connectors: Mapping[str, ConnectorState] | None = None

    def config(self, name: str) -> Mapping[str, object]:
        """Return the connector's configuration; empty where it is not known."""
        state = (self.connectors or {}).get(name)
        return (state.config or {}) if state else {}

    def sources(self) -> tuple[str, ...]:
        """Return the names of the source connectors that are not deleted."""
        return tuple(
            sorted(name for name in self.connectors or {} if plugin_type(self.config(name) or None) == "source")
        )

    def task_count(self, name: str) -> int:
        """Return how many tasks `name` may have, has, or had, whichever is most. Raises NotFoundError, UsageError."""
        if self.connectors is None:
            raise UsageError(
                f"how many tasks has {name}?",
                hint="Give --tasks N, or name the cluster (-b) or a worker (-u) to look it up.",
            )
        state = self.connectors.get(name)
        if state is None:
            raise NotFoundError(f"the group has no connector {name}", hint="Give --tasks N for one that is to come.")
        most = java_number(self.most_tasks(name))
        return max(most if most is not None else 1, state.task_count or 0, state.task_count_record or 0)

    def most_tasks(self, name: str) -> str:
        """Return the connector's tasks.max, as its config spells it."""
        return str(self.config(name).get("tasks.max", "1"))


def read_connectors(app: App) -> Mapping[str, ConnectorState]:
    """Read the connectors by name. Raises what reading the config topic raises, and the error made by `no_answer`."""
    if app.target.client is None and app.target.connect_urls:
        return _ask_workers(app)
    try:
        with app.topics() as store:
            return read_config_topic(app, store).state.connectors
    except EosctlError as unread:
        try:
            return _ask_workers(app)
        except EosctlError:
            raise unread from None


def _ask_workers(app: App) -> Mapping[str, ConnectorState]:
    """Return the connectors that the first answering worker of the named ones reports."""
    failures: list[EosctlError] = []
    for _url, worker in in_turn(app, app.target.connect_urls):
        try:
            entries = worker.connectors()
        except EosctlError as exc:
            failures.append(exc)
        else:
            return {
                name: ConnectorState(name, entry.config, task_count=len(entry.wanted))
                for name, entry in entries.items()
            }
    raise no_answer("no worker reports the connectors", failures)
