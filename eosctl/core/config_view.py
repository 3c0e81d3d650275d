"""Shows a folded config topic as plain data: what `task-counts replay` prints, and what two views of a topic differ in.

The topic holds secrets in clear text; what leaves this module has passed `hide_secrets`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from eosctl.core.config_topic import ConfigState, ConnectorState

_SECRET_NAME = re.compile(r"password|passwd|secret|token|credential|jaas|(api|access|private|ssl)[._-]?.*key", re.I)
_SECRET_IN_URL = re.compile(r"(?<=://)[^/@\s]+:[^/@\s]+(?=@)")


def hide_secrets(config: Mapping[str, object]) -> dict[str, object]:
    """A connector's config fit to be shown: values under secret-sounding names are `***`, `${…}` references are not."""
    return {_text(name): _shown(name, value) for name, value in config.items()}


def _shown(name: str, value: object) -> object:
    if not isinstance(value, str):
        return value
    if _SECRET_NAME.search(name) and not (value.startswith("${") and value.endswith("}")):
        return "***"
    return _text(_SECRET_IN_URL.sub("***", value))


def _text(text: str) -> str:
    """Text that can be encoded: JSON may spell half a surrogate pair."""
    return text.encode("utf-8", "replace").decode("utf-8")


def state_document(state: ConfigState) -> dict[str, object]:
    """`data.state` of `task-counts replay`; task configs and the session key are not in it."""
    return {
        "offset": state.offset,
        "connectors": {_text(name): _connector_document(connector) for name, connector in state.connectors.items()},
        "ignored": [
            {"offset": each.offset, "key": each.key, "code": each.code, "reason": each.reason} for each in state.ignored
        ],
        "commits_without_connector": list(state.commits_without_connector),
    }


def _connector_document(connector: ConnectorState) -> dict[str, object]:
    return {
        "config": None if connector.config is None else hide_secrets(connector.config),
        "target_state": connector.target_state,
        "task_count": connector.task_count,
        "task_ids": connector.task_ids,
        "inconsistent": connector.inconsistent,
        "pending_fencing": connector.pending_fencing,
        "task_count_record": connector.task_count_record,
        "task_config_generation": connector.task_config_generation,
    }


def differing_connectors(committed: ConfigState, uncommitted: ConfigState) -> list[str]:
    """Connectors that preparing and disabled workers hold differently, because they read aborted records too."""
    names = {*committed.connectors, *uncommitted.connectors}
    return sorted(name for name in names if _held(committed, name) != _held(uncommitted, name))


def _held(state: ConfigState, name: str) -> dict[str, object]:
    """A connector as a worker holds it; generations count commits, so an aborted one alone may change them."""
    document = _connector_document(state.connectors.get(name) or ConnectorState(name))
    return {key: value for key, value in document.items() if key != "task_config_generation"}
