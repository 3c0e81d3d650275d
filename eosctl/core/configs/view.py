"""Shows a folded config topic as plain data, for `task-counts replay` and to compare two views of a topic.

The topic holds secrets in clear text; `hide_secrets` is applied to everything that leaves this module.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from eosctl.core.clients.hidden_secrets import hide_secrets, shown_value
from eosctl.core.configs.fold import ConfigState, ConnectorState
from eosctl.core.record_file import encode_bytes
from eosctl.core.records import Record
from eosctl.core.wording import encodable

CONFIG_KEYS = (b"connector-", b"task-", b"session-key")
"""Prefixes of the keys of connectors' and tasks' configs, and of the session key."""


def is_config_key(key: bytes | None) -> bool:
    """Return whether a key belongs to a connector's config, a task's config or the session key."""
    return key is not None and key.startswith(CONFIG_KEYS)


def without_secrets(record: Record) -> Record:
    """Return the record fit to be shown or stored: values that may hold secrets become `***`, their names stay.

    Those are connectors' and tasks' configs and the session key; keys of other topics don't look like theirs.
    """
    if record.value is None or not is_config_key(record.key):
        return record
    key = record.key
    try:
        value = json.loads(record.value)
    except (ValueError, RecursionError):
        value = None
    shown = _hidden_value(value, is_key=key == b"session-key") if isinstance(value, dict) else "***"
    return record._replace(value=json.dumps(shown, separators=(",", ":")).encode())


def _hidden_value(value: dict[str, object], *, is_key: bool) -> object:
    if is_key:
        return {name: "***" if name == "key" else shown_value(name, each) for name, each in value.items()}
    return {
        name: hide_secrets(each) if name == "properties" and isinstance(each, dict) else "***"
        for name, each in value.items()
    }


def state_document(state: ConfigState) -> dict[str, object]:
    """Return `data.state` of `task-counts replay`, without task configs and the session key."""
    return {
        "offset": state.offset,
        "connectors": {encodable(name): _connector_document(connector) for name, connector in state.connectors.items()},
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
    """Return the connectors that preparing and disabled workers hold differently.

    They differ because such workers read aborted records too.
    """
    names = {*committed.connectors, *uncommitted.connectors}
    return sorted(name for name in names if _held(committed, name) != _held(uncommitted, name))


def aborted_records(committed: Sequence[Record], everything: Sequence[Record]) -> list[dict[str, object]]:
    """Return the records that only a reader of aborted records sees, in offset order, fit to be shown.

    `newest`: no record under its key comes after it, so that such a reader ends with it. `committed` is the record that
    other readers end with, and `differs` whether the two have different contents (also where the difference is hidden).
    """
    real = {record.offset for record in committed}
    last = {record.key: record.offset for record in everything}
    counting = {record.key: record for record in committed}
    return [
        _aborted(record, counting.get(record.key), newest=last[record.key] == record.offset)
        for record in everything
        if record.offset not in real
    ]


def _aborted(record: Record, committed: Record | None, *, newest: bool) -> dict[str, object]:
    differs = record.value != (None if committed is None else committed.value)
    beside = None if committed is None else {"offset": committed.offset, "value": _said(committed)["value"]}
    return {**_said(record), "newest": newest, "differs": differs, "committed": beside}


def _said(record: Record) -> dict[str, object]:
    value = without_secrets(record).value
    try:
        shown = None if value is None else json.loads(value)
    except (ValueError, RecursionError):
        shown = encode_bytes(value)
    return {"offset": record.offset, "key": encode_bytes(record.key), "value": shown}


def _held(state: ConfigState, name: str) -> dict[str, object]:
    """Return a connector as a worker holds it, including its secrets.

    The generation is left out: it counts commits, so an aborted one alone changes it.
    """
    connector = state.connectors.get(name) or ConnectorState(name)
    document = {**_connector_document(connector), "config": connector.config}
    return {key: value for key, value in document.items() if key != "task_config_generation"}
