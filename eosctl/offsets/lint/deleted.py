"""Finds offsets that were deleted with the start of their topic, so that no key is left. Reads only.

Asks which connectors have committed before, and only if a topic's log starts behind offset 0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from eosctl.app import App
from eosctl.connectors.dedicated import DedicatedTopics
from eosctl.core.configs.classes import MIRROR_CHECKPOINT, is_class
from eosctl.core.configs.fold import ConnectorState
from eosctl.core.findings import ERROR, WARNING, Finding
from eosctl.core.ids import TransactionalId, task_transactional_ids
from eosctl.core.offsets.views import Store
from eosctl.core.transactions import TransactionDescription, TransactionState
from eosctl.core.workers.connector_entry import plugin_type
from eosctl.errors import EosctlError, InterruptedByUserError
from eosctl.foreign import shell_word
from eosctl.group.topics.config_reader import find_config_topic
from eosctl.offsets.lint import codes
from eosctl.report import Problem

_MOST_IDS = 100
"""The most tasks of a connector to ask for: one that has committed is enough."""


def find_deleted_offsets(
    app: App, stores: Sequence[Store], cut: Collection[str], dedicated: DedicatedTopics
) -> tuple[list[Finding], list[Problem]]:
    """Judge source connectors without any offset in `stores`; `cut` are the topics whose start was deleted."""
    group_id, configs = app.target.group_id, dedicated.configs
    if group_id is None or not cut:
        return [], []
    with_offsets = {name for store in stores for name in store.names()}
    lost = {
        name: topic
        for name, config in sorted(configs.items())
        if (topic := dedicated.configured.get(name, app.target.offset_topic)) in cut
        and name not in with_offsets and name not in dedicated.brokers and name not in dedicated.unknown
        and plugin_type(config) == "source" and not is_class(config, MIRROR_CHECKPOINT)
    }  # fmt: skip
    try:
        recorded = _recorded(app, lost)
        committed = _committed(app, group_id, recorded)
    except InterruptedByUserError:
        raise
    except EosctlError as exc:
        return [], [Problem.of(exc)]
    return [_deleted(name, topic, name in committed) for name, topic in lost.items() if name in recorded], []


def _recorded(app: App, names: Collection[str]) -> dict[str, ConnectorState]:
    """Return the connectors whose tasks ran exactly-once, by their task-count record."""
    if not names:
        return {}
    with app.topics() as store:
        found = find_config_topic(app, store)
    known: Mapping[str, ConnectorState] = {} if found is None else found.state.connectors
    return {name: known[name] for name in names if name in known and known[name].task_count_record}


def _committed(app: App, group_id: str, recorded: Mapping[str, ConnectorState]) -> set[str]:
    """Return the connectors that have a task whose newest transaction is committed."""
    ids = {name: _ids(group_id, name, state) for name, state in recorded.items()}
    if not ids:
        return set()
    with app.transactions() as admin:
        described = admin.describe_transactions([each for of in ids.values() for each in of])
    return {name for name, of in ids.items() if _one_committed(described.get(each) for each in of)}


def _ids(group_id: str, name: str, state: ConnectorState) -> list[TransactionalId]:
    count = max(state.task_count_record or 0, state.task_count or 0)
    return task_transactional_ids(group_id, name, min(count, _MOST_IDS))


def _one_committed(described: Iterable[object]) -> bool:
    known = [description for description in described if isinstance(description, TransactionDescription)]
    return any(description.state is TransactionState.COMPLETE_COMMIT for description in known)


def _deleted(name: str, topic: str, has_committed: bool) -> Finding:
    ran = "has committed before" if has_committed else "ran exactly-once before, and may have committed"
    meant = f"{codes.OFFSETS_DELETED}:{name}"
    return Finding(
        codes.OFFSETS_DELETED, ERROR if has_committed else WARNING, name,
        f"{name} {ran}, and has no offset anywhere: records were deleted from the start of {topic}; its next start "
        "reads its source from the beginning",
        f"Do not resume or restart {shell_word(name)} before its offsets are back: from an export with "
        "`eosctl offsets import`, from a backup with `eosctl offsets restore`. If they were reset: "
        f"`eosctl doctor --ignore {shell_word(meant)}`.",
        {"connector": name, "topic": topic, "committed": has_committed}, certain=has_committed,
    )  # fmt: skip
