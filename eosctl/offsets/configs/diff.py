"""`connectors diff`: compares a connector's definition in a file with the live one; writes nothing.

The source partitions that the connector has an offset of are those in its offsets topics now. What becomes of them is
decided by the rules of known connectors, and unknown for all others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from eosctl.app import App
from eosctl.connectors.definition import ConnectorDefinition
from eosctl.connectors.look import store_name, unknown_connector
from eosctl.connectors.validity import config_errors
from eosctl.core.clients.hidden_secrets import shown_name, shown_value
from eosctl.core.configs.records import OFFSETS_TOPIC, PROPERTY, names_one_of
from eosctl.core.java.properties import is_reference
from eosctl.core.offsets.names import GLOBAL
from eosctl.core.offsets.records import shown_json
from eosctl.core.offsets.views import Flag, OffsetView, Store, live, offset_views
from eosctl.core.wording import is_topic_name, rfc3339
from eosctl.errors import EosctlError, ExitCode, NotFoundError, RefusedError, UnreachableError
from eosctl.group.belonging import connectors_of
from eosctl.group.gather import discover_urls, in_turn
from eosctl.offsets import codes
from eosctl.offsets.configs.rows import (
    CONNECTORS_DIFF,
    ConfigDiffData,
    ConfigDiffSummary,
    PartitionRow,
    PropertyPart,
)
from eosctl.offsets.history.config_changes import (
    OWN_BROKERS,
    ConfigEffect,
    PartitionChange,
    PartitionStatus,
    changed_names,
    compare_configs,
    is_connects_own,
    starts_over,
)
from eosctl.offsets.history.sources import source_of_class
from eosctl.offsets.rows import partition_json, value_json
from eosctl.offsets.stores.gather import OffsetStores, gather_stores
from eosctl.ports import ConnectWorker
from eosctl.report import Problem, Report


def diff_config(app: App, definition: ConnectorDefinition) -> Report:
    """Compare `definition` with the live connector of its name.

    Exit 0 if nothing differs; 7 if it is unknown what becomes of a source partition, and nothing else is certain to
    start over, to be left behind or to be refused; else 3. Raises NotFoundError for an unknown connector, RefusedError
    for a sink.
    """
    name, after = definition.name, definition.config
    found = _gather(app, name, after)
    before = {**_live_config(found, name), "name": name}
    changed = changed_names(before, after)
    there = None if any(name in changed for name in OWN_BROKERS) else _store_there(app, name, found, after)
    views = [
        view
        for view in offset_views(found.rows(name), name, dedicated_in_use=found.has_own(name))
        if _counts(view) or (there is not None and _has(there, view))
    ]
    readable = None if there is None else {place for place, view in enumerate(views) if _has(there, view)}
    effect = compare_configs(before, after, [view.key.partition for view in views], readable=readable)
    if not _all_seen(found, name):
        effect = _not_seen(effect)
    summary = _summary(effect, after)
    errors, problems = _ask_worker(app, name, after) if changed else (None, [])
    over = starts_over(name, effect)
    invalid = [Problem(codes.CONFIG_NOT_VALID, f"{name}: {each}") for each in errors or ()]
    return Report(
        CONNECTORS_DIFF,
        rows=_rows(name, effect, views),
        summary=summary,
        data=ConfigDiffData(properties=_properties(effect, before, after), errors=errors),
        target={"kafka_cluster_id": found.cluster_id, "group_id": app.target.group_id},
        problems=[*found.problems(), *problems, *invalid, *([over.as_warning()] if over else [])],
        exit_code=_exit_code(effect, summary, invalid=bool(invalid)),
    )


def _ask_worker(app: App, name: str, config: Mapping[str, str]) -> tuple[list[str] | None, list[Problem]]:
    """Have the first worker that answers validate the config: its errors, or None and the reason.

    A worker that was not named gets no config, which may hold secrets.
    """
    why: EosctlError = UnreachableError("no worker is named", hint="Give the URL of one: -u.")
    try:
        for url, worker in in_turn(app, discover_urls(app)):
            try:
                connectors_of(app, worker)
                kind = worker.connector_status(name).type
                if kind != "sink" and app.target.trusts(url):
                    return _objections(worker, config), []
            except EosctlError as exc:
                why = exc
                continue
            if kind == "sink":
                break
        else:
            return None, [_not_validated(why)]
    except EosctlError as exc:
        return None, [_not_validated(exc)]
    raise RefusedError(
        f"{name} is a sink connector: its offsets are those of a consumer group",
        hint="Only source connectors have source partitions.",
    )


def _objections(worker: ConnectWorker, config: Mapping[str, str]) -> list[str]:
    """Return what a worker has against the config: it lacks the class, or validation finds errors."""
    named = config.get(PROPERTY, "")
    listed = [str(each.get("class")) for each in worker.plugins()]
    if not is_reference(named) and not names_one_of(config, listed):
        return [f"{PROPERTY}: the worker at {worker.url} has no plugin {named}"]
    return config_errors(worker.validate(named, config), config)


def _not_validated(why: EosctlError) -> Problem:
    return Problem(codes.CONFIG_NOT_VALIDATED, f"the new config was not validated: {why.message}", hint=why.hint)


def _gather(app: App, name: str, after: Mapping[str, str]) -> OffsetStores:
    """Read the stores of the connector, and the one that its new config names, if it is there."""
    store = _store_after(app, after)
    if store not in (None, GLOBAL):
        with app.topics() as topics:
            if store in topics.describe([store]):
                return gather_stores(app, connectors=[name], extra=(store,))
    return gather_stores(app, connectors=[name])


def _store_after(app: App, after: Mapping[str, str]) -> str | None:
    """Return `global` or the topic that the new config names; None where only a worker knows it."""
    store = store_name(app, after.get(OFFSETS_TOPIC))
    return store if store == GLOBAL or is_topic_name(store) else None


def _live_config(found: OffsetStores, name: str) -> Mapping[str, str]:
    configs = found.dedicated.configs
    if name in configs:
        return configs[name]
    if found.dedicated.connectors is None:
        raise UnreachableError(
            f"the live config of {name} is not known: neither a worker nor the config topic could be read",
            hint="Give the URL of a worker (-u), or --config-topic.",
        )
    error = unknown_connector(f"there is no connector {name}", name, configs)
    raise NotFoundError(error.message, hint=f"`eosctl connectors create` makes it. {error.hint}")


def _counts(view: OffsetView) -> bool:
    """Decide whether the connector has an offset there now, or may have one that an open transaction hides."""
    return view.runtime is not None or Flag.HIDDEN in view.flags


def _all_seen(found: OffsetStores, name: str) -> bool:
    """Decide whether the offsets of the connector could all be read."""
    elsewhere = name in found.dedicated.brokers and name not in found.own
    return not elsewhere and name not in found.dedicated.unknown


def _store_there(app: App, name: str, found: OffsetStores, after: Mapping[str, str]) -> Store | None:
    """Return the store where the connector looks for offsets with the new config; None where that is unknown.

    One with a topic of its own reads nothing else (`OffsetView`).
    """
    store = _store_after(app, after)
    if store is None or any(map(after.get, OWN_BROKERS)):
        return None
    return found.rows(name).get(store) or Store(store, 1)


def _has(store: Store, view: OffsetView) -> bool:
    """Decide whether a store has an offset of a view's key, or may have one that an open transaction hides."""
    return live(store.records.get(view.key.raw)) is not None or store.hides(view.key.raw)


def _not_seen(effect: ConfigEffect) -> ConfigEffect:
    """Return the effect where not all present offsets were read: what seems new may have one."""
    why = "the present offsets of the connector can't be read"
    return replace(
        effect,
        unknown=why,
        partitions=tuple(
            replace(each, status=PartitionStatus.UNKNOWN, why=why) if each.status is PartitionStatus.NEW else each
            for each in effect.partitions
        ),
    )


def _rows(name: str, effect: ConfigEffect, views: Sequence[OffsetView]) -> list[PartitionRow]:
    """Return the rows of the present source partitions, in the order of `views`, then of those that are new."""
    present = [_present_row(name, each, view) for each, view in zip(effect.partitions, views, strict=False)]
    fresh = [
        PartitionRow(
            connector=name, source_partition=shown_json(each.partition), status=each.status, offset=None,
            committed=None, why=each.why,
        )
        for each in effect.partitions[len(views) :]
    ]  # fmt: skip
    return [*present, *fresh]


def _present_row(name: str, change: PartitionChange, view: OffsetView) -> PartitionRow:
    record = view.runtime
    hidden = "an open transaction hides its newest offset" if Flag.HIDDEN in view.flags else None
    return PartitionRow(
        connector=name,
        source_partition=partition_json(view.key),
        status=change.status,
        offset=None if record is None else value_json(record.value),
        committed=None if record is None else rfc3339(record.timestamp_ms),
        why=change.why or hidden,
    )


def _properties(effect: ConfigEffect, before: Mapping[str, str], after: Mapping[str, str]) -> list[PropertyPart]:
    meanings = {name: meaning for meaning in effect.meanings for name in meaning.properties}
    return [
        PropertyPart(
            name=shown_name(name),
            change="added" if name not in before else "removed" if name not in after else "changed",
            before=shown_value(name, before.get(name)),
            after=shown_value(name, after.get(name)),
            meaning=meanings[name].text if name in meanings else None,
            may_skip=name in meanings and meanings[name].may_skip,
        )
        for name in effect.changed
    ]


def _summary(effect: ConfigEffect, after: Mapping[str, str]) -> ConfigDiffSummary:
    source = source_of_class(after)
    is_unseen = effect.unknown is not None and not all(map(is_connects_own, effect.changed))
    unknown = bool(effect.of(PartitionStatus.UNKNOWN)) or is_unseen
    return ConfigDiffSummary(
        properties=len(effect.changed),
        counts={status.value: len(effect.of(status)) for status in PartitionStatus},
        starts_over=True if effect.starts_over else None if unknown else False,
        known_source=None if source is None else source.name,
    )


def _exit_code(effect: ConfigEffect, summary: ConfigDiffSummary, *, invalid: bool) -> ExitCode:
    if not effect.changed:
        return ExitCode.OK
    is_certain = invalid or bool(effect.of(PartitionStatus.NEW, PartitionStatus.GOES))
    return ExitCode.PARTIAL if summary.starts_over is None and not is_certain else ExitCode.FINDINGS
