"""A source connector's handling of records that it can't convert or transform. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from eosctl.core.findings import INFO, Finding
from eosctl.group.observation.rules import Observation, ObservedConnector
from eosctl.observation.connectors import codes

_TOLERANCE = "errors.tolerance"


def tolerance(connector: ObservedConnector, _observation: Observation) -> Iterable[Finding]:
    """Find settings that drop records: a source has no dead letter queue, and later offsets are committed.

    The user chose it, so it is no warning.
    """
    if connector.config.get(_TOLERANCE, "").strip().lower() != "all":
        return
    logged = connector.config.get("errors.log.enable", "").strip().lower() == "true"
    seen = "the workers' logs have them" if logged else "no log has them, without errors.log.enable=true"
    yield Finding(
        codes.RECORDS_DROPPED, INFO, connector.name,
        f"{connector.name} sets {_TOLERANCE}=all: records are dropped at which a converter or transformation "
        f"fails, and {seen}",
        codes.RECORDS_DROPPED.next,
        {_TOLERANCE: "all", "errors.log.enable": logged},
    )  # fmt: skip
