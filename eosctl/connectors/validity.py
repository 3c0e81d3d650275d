"""Connect's approval of a config, before it is changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from eosctl.core.clients.hidden_secrets import without_values
from eosctl.core.configs.records import PROPERTY
from eosctl.core.wording import counted
from eosctl.core.workers.connector_entry import mapping_of
from eosctl.errors import ConnectError, RefusedError
from eosctl.ports import ConnectWorker

_MOST_ERRORS = 3


def require_valid_config(worker: ConnectWorker, connector: str, config: Mapping[str, str], *, hint: str) -> None:
    """Raise RefusedError for a config that Connect would reject, by the connector's own checks too.

    These ask the source: a database that is down is an error of the config. `hint` is the next step.
    """
    try:
        answer = worker.validate(config.get(PROPERTY, ""), config)
    except ConnectError as exc:
        raise RefusedError(
            f"the worker can't validate the config that {connector} would get: {exc.message}; nothing was changed",
            hint=exc.hint,
        ) from exc
    errors = config_errors(answer, config)
    if not errors and not answer.get("error_count"):
        return
    more = "" if len(errors) <= _MOST_ERRORS else f" and {counted(len(errors) - _MOST_ERRORS, 'other')}"
    redacted = f" {_IN_LOG}" if any(_REDACTED in error for error in errors) else ""
    raise RefusedError(
        f"Connect would not take the config that {connector} would get: {'; '.join(errors[:_MOST_ERRORS])}{more}; "
        "nothing was changed",
        hint=f"{hint}{redacted}",
    )


# AbstractHerder.redactResolvedValues (Kafka 4.4) puts it in place of what speaks against a config provider's value
_REDACTED = "the value resolved from the config provider reference failed validation"
_IN_LOG = (
    "What is wrong with the value of a config provider the worker writes only to its log, at TRACE of AbstractHerder, "
    "perhaps with the value."
)


def config_errors(answer: Mapping[str, object], config: Mapping[str, str]) -> list[str]:
    """Return the errors that a worker's validation has for `config`, without its secrets."""
    passwords = _passwords(answer)
    return [f"{name}: {without_values(error, config, secret=passwords)}" for name, error in _errors(answer)]


def _passwords(answer: Mapping[str, object]) -> set[str]:
    """Return the settings that the connector itself defines as passwords."""
    configs = cast("list[object]", answer.get("configs") or [])
    definitions = [mapping_of(mapping_of(definition).get("definition")) for definition in configs]
    return {str(definition.get("name")) for definition in definitions if definition.get("type") == "PASSWORD"}


def _errors(answer: Mapping[str, object]) -> list[tuple[str, str]]:
    found = []
    for entry in cast("list[Mapping[str, Any]]", answer.get("configs") or []):
        value = entry.get("value") or {}
        found += [(str(value.get("name")), str(error)) for error in value.get("errors") or ()]
    return found
