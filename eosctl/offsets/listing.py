"""`offsets list | get | diff`: reads source offsets across their stores; writes nothing.

A comparison of offsets has its own exit code, and reports keys that were not compared.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.connectors.dedicated import TOPIC_PROPERTY, describe_unknown
from eosctl.core.configs.records import UnparsableValueError, decode_value
from eosctl.core.offsets.codes import MAY_BE_ABORTED
from eosctl.core.offsets.findings import open_transaction_finding
from eosctl.core.offsets.names import DEDICATED, GLOBAL
from eosctl.core.offsets.records import OffsetKey, typed_partition
from eosctl.core.offsets.views import (
    DiffStatus,
    IgnoredOffsetRecord,
    OffsetView,
    OffsetViews,
    Store,
    diff_status,
    offset_views,
)
from eosctl.core.open_transactions import OPEN_TRANSACTION
from eosctl.core.records import UNKNOWN, Record
from eosctl.deadline import Event
from eosctl.errors import ExitCode, NotFoundError, RefusedError, UsageError
from eosctl.foreign import shell_word
from eosctl.group.absent import KnownEvidence, require_ever_there
from eosctl.offsets import codes
from eosctl.offsets.history.events import members_of, order_of_values, source_of
from eosctl.offsets.history.gtids import Order
from eosctl.offsets.rest import compare_with_rest
from eosctl.offsets.rows import (
    OFFSETS_DIFF,
    OFFSETS_GET,
    OFFSETS_LIST,
    DiffData,
    DiffRow,
    DiffSummary,
    GetData,
    GetRow,
    GetSummary,
    KnownSourcePart,
    ListData,
    OffsetsSummary,
    PlainViews,
    ViewRows,
    cell_of,
    ignored_parts,
    plain_views,
    view_members,
)
from eosctl.offsets.stores.gather import AwayStore, OffsetStores, gather_stores
from eosctl.report import Problem, Report, Row
from eosctl.txn.open_transactions import find_open_transactions

HIDDEN = DiffStatus.HIDDEN.value
"""The status of a key that an open transaction hides, in every comparison."""


def comparison_exit_code(*, differing: bool, hidden: bool, strict: bool) -> ExitCode:
    """Return 3 if keys differ; else 7, or 3 if `strict`, if some could not be compared."""
    if differing or (hidden and strict):
        return ExitCode.FINDINGS
    return ExitCode.PARTIAL if hidden else ExitCode.OK


def hidden_problem(hidden: int, compared: int, *, where: str = "") -> Problem:
    """Return the problem that says how many keys were not compared; `where` begins with a space."""
    message = f"{hidden} of {compared} keys{where} can't be compared: an open transaction hides newer records of them"
    return Problem(
        OPEN_TRANSACTION, message, hint="`eosctl txn hanging` shows its producer; run again when it has ended."
    )


_MOST_NAMED = 10


class OffsetQuery(Struct, frozen=True):
    """The connectors to look for, and the stores to look in.

    No `connectors` means all. `stores` (`global`, `dedicated`, TOPIC, TOPIC@PROFILE) keeps the source partitions that
    one of them has. `dedicated_topic` (`offsets-{connector}`) is assumed for connectors whose config names none.
    """

    connectors: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()
    dedicated_topic: str | None = None


def list_offsets(app: App, query: OffsetQuery) -> Report:
    """List every source partition with its value in each store; exit 0 whatever is found.

    The rows of plain keys in a large topic are made of columns.
    """
    found = _gather(app, query)
    views = _views_to_list(app, found, query)
    rows = ViewRows(views, now_ms=app.clock.now_ms())
    ignored = ListData(ignored=ignored_parts(_ignored(found)))
    summary = OffsetsSummary(**_summary(found, views))
    return Report(OFFSETS_LIST, rows, summary, ignored, report_target(app, found), _all_problems(app, found, views))


def get_offsets(app: App, query: OffsetQuery, *, partition: str | None = None, rest: bool = False) -> Report:
    """Report a connector's source partitions, or the one that `partition` (JSON) names in any spelling.

    With `rest`, each row also reports a worker's answer (KIP-875), and whether a task would get the same. Raises
    NotFoundError if no store has that source partition.
    """
    found = _gather(app, query)
    of_connectors = _views(app, found, query)
    if partition is not None:
        wanted = {typed_partition(connector, partition).identity for connector in query.connectors}
        of_connectors = [of_connector.of(wanted) for of_connector in of_connectors]
    views = list(chain.from_iterable(of_connectors))
    if partition is not None and not views:
        raise NotFoundError(
            f"no offset of {', '.join(query.connectors)} for source partition {partition}",
            hint="`eosctl offsets get --connector NAME` shows all; numbers and texts are different.",
        )
    rows = [GetRow(**members) for members in _members(app, views)]
    ignored = GetData(ignored=ignored_parts(_ignored(found)), sources=_sources(views))
    summary = GetSummary(**_summary(found, of_connectors))
    problems = _all_problems(app, found, of_connectors)
    report = Report(OFFSETS_GET, rows, summary, ignored, report_target(app, found), problems)
    return compare_with_rest(app, report, views, query.connectors, whole=partition is None) if rest else report


def diff_offsets(
    app: App,
    query: OffsetQuery,
    *,
    left: str = GLOBAL,
    right: str = DEDICATED,
    strict: bool = False,
    files: Mapping[str, AwayStore] = {},
) -> Report:
    """Compare two stores of the connectors, either of which may be one of `files`.

    Exit 3 if a source partition is not the same in both; 7, or 3 if `strict`, if an open transaction hides one. Keys
    and values of a file are compared as JSON: it may spell the same otherwise.
    """
    stores = [side for side in (left, right) if side not in files]
    found = _gather(app, OffsetQuery(query.connectors, (*query.stores, *stores), query.dedicated_topic))
    found = replace(found, away={**found.away, **files})
    for connector in query.connectors or found.connectors():
        for side in stores:
            require_store(found, connector, side)
        if not files:
            refuse_same(found, connector, left, right)
    for side, other in ((left, right), (right, left)):
        if side in files and side != other:
            spelled = _spelled_as(found, side, other, query.connectors or found.connectors())
            found = replace(found, away={**found.away, side: spelled})
    views = list(chain.from_iterable(_views(app, found, query)))
    pairs = [(view.cells.get(left), view.cells.get(right)) for view in views]
    statuses = [
        DiffStatus.HIDDEN if _hides(found, view, (left, right)) else _compared(pair, as_json=bool(files))
        for view, pair in zip(views, pairs, strict=True)
    ]
    rows = [
        DiffRow(
            **members,
            left=left_cell and cell_of(left_cell),
            right=right_cell and cell_of(right_cell),
            status=status,
            order=None if status is DiffStatus.HIDDEN else _order(view.key, left_cell, right_cell),
        )
        for view, members, (left_cell, right_cell), status in zip(
            views, _members(app, views), pairs, statuses, strict=True
        )
    ]
    counts = Counter(statuses)
    hidden = counts[DiffStatus.HIDDEN]
    differing = len(statuses) - counts[DiffStatus.SAME] - hidden
    return Report(
        kind=OFFSETS_DIFF,
        rows=rows,
        summary=DiffSummary(differing=differing, counts={status.value: counts[status] for status in DiffStatus}),
        data=DiffData(left=left, right=right, clusters={side: cluster_of(found, side) for side in stores}),
        target=report_target(app, found),
        problems=[
            *_listing_problems(app, found),
            *([hidden_problem(hidden, len(statuses))] if hidden else []),
            *(Problem(MAY_BE_ABORTED, each) for file in files.values() for each in file.cautions),
        ],
        exit_code=comparison_exit_code(differing=bool(differing), hidden=bool(hidden), strict=strict),
    )


def _spelled_as(found: OffsetStores, side: str, other: str, connectors: Iterable[str]) -> AwayStore:
    """Return the file `side` with the keys of the store `other`, where they mean the same source partition."""
    keys, records = dict[str, list[OffsetKey]](), dict[bytes, Record]()
    for connector in connectors:
        stores = found.rows(connector)
        spellings = {key.identity: key for key in stores[other].connectors.get(connector, ())}
        file = stores[side]
        for key in file.connectors.get(connector, ()):
            as_there = spellings.get(key.identity, key)
            chosen = key if as_there.raw in file.records else as_there
            records[chosen.raw] = file.records[key.raw]
            keys.setdefault(connector, []).append(chosen)

    def partition_of(key: bytes, _partitions: int) -> int:
        return records[key].partition if key in records else UNKNOWN

    store = Store(side, 0, records=records, connectors=keys, partition_for=partition_of)
    return replace(found.away[side], store=store)


def _compared(pair: tuple[Record | None, Record | None], *, as_json: bool) -> DiffStatus:
    status = diff_status(*pair)
    if as_json and status is DiffStatus.DIFFERS:
        try:
            left, right = (json.dumps(decode_value(each and each.value), sort_keys=True) for each in pair)
        except UnparsableValueError:
            return status
        return DiffStatus.SAME if left == right else status
    return status


def _order(key: OffsetKey, left: Record | None, right: Record | None) -> Order | None:
    """Return the order of the right offset relative to the left; None unless there are both."""
    return None if left is None or right is None else order_of_values(key.partition, left.value, right.value)


def _sources(views: Iterable[OffsetView]) -> list[KnownSourcePart]:
    """Return the known sources that the offsets which take effect look like, the most frequent first."""
    offsets = ((view.key.partition, members_of(view.runtime.value)) for view in views if view.runtime is not None)
    found = [source for partition, offset in offsets if (source := source_of(partition, offset)) is not None]
    names = Counter(source.name for source in found)
    by_name = {source.name: source for source in found}
    return [
        KnownSourcePart(
            name=name, source_partitions=count, must_hold=by_name[name].keeps, instead=by_name[name].instead
        )
        for name, count in names.most_common()
    ]


def _hides(found: OffsetStores, view: OffsetView, names: Iterable[str]) -> bool:
    stores = found.of(view.key.connector)
    return any(stores[name].hides(view.key.raw) for name in names)


def report_target(app: App, found: OffsetStores) -> Row:
    """Return the envelope's `target`."""
    return {"kafka_cluster_id": found.cluster_id, "group_id": app.target.group_id}


def cluster_of(found: OffsetStores, name: str) -> str:
    """Return the id of a store's cluster: the dedicated store may be on brokers of the connectors' own."""
    if name in found.away:
        return found.away[name].cluster_id
    own = {other.cluster_id for other in found.own.values()} if name == DEDICATED else set()
    return own.pop() if len(own) == 1 and not found.has_dedicated_here() else found.cluster_id


def refuse_same(found: OffsetStores, connector: str, left: str, right: str) -> None:
    """Raise UsageError if a profile's store is in fact the other one: cluster ids decide, not names."""
    stores = found.of(connector)
    if {left, right} & set(found.away) and found.place(stores[left], left) == found.place(stores[right], right):
        raise UsageError(
            f"{left} and {right} are one topic, {found.place(stores[left], left)[1]} on cluster "
            f"{cluster_of(found, left)}",
            hint="Check the profile's bootstrap_server.",
        )


def require_store(found: OffsetStores, connector: str, name: str) -> None:
    """Raise an error if `name` is `dedicated` and the dedicated store of `connector` is missing or out of reach.

    Raises UsageError for a dedicated topic that is not there or not seen, RefusedError for one that can't be read or
    whose name is unknown.
    """
    if name == DEDICATED and connector in found.dedicated.brokers and connector not in found.own:
        raise RefusedError(
            f"the own offsets of connector {connector} are on Kafka brokers that its config names, and can't be read",
            hint="Make a profile that leads there, and name the store: TOPIC@PROFILE.",
        )
    if name == DEDICATED and found.dedicated.of(connector) is None and connector not in found.own:
        refuse_unknown(found, connector)
        found.dedicated.refuse_none(
            connector, hint="Name the one it will get: --dedicated-topic 'offsets-{connector}'."
        )


def refuse_unknown(found: OffsetStores, connector: str) -> None:
    """Raise RefusedError for a connector with a topic of its own whose name only its worker knows."""
    value = found.dedicated.unknown.get(connector)
    if value is not None and found.dedicated.of(connector) is None:
        raise RefusedError(
            f"{describe_unknown(connector, value)}, so its own offsets are not known",
            hint=f"Put the topic's name itself into {TOPIC_PROPERTY}; it is no secret.",
        )


def _gather(app: App, query: OffsetQuery) -> OffsetStores:
    _require_group(app)
    extra = tuple(name for name in query.stores if name not in (GLOBAL, DEDICATED))
    return gather_stores(app, connectors=query.connectors or None, pattern=query.dedicated_topic, extra=extra)


def _require_group(app: App) -> None:
    """Raise NotFoundError if the named group never existed, while others do.

    Reading offsets needs neither a group nor the right to describe it. But a mistyped group would go on to a write.
    """
    require_ever_there(app, KnownEvidence(may_be_new=True))


def _views(app: App, found: OffsetStores, query: OffsetQuery) -> list[OffsetViews]:
    """Return the views of each connector."""
    return [
        offset_views(found.rows(connector), connector, dedicated_in_use=found.has_own(connector), gone=gone)
        for connector, gone in _connectors(app, found, query)
    ]


def _views_to_list(app: App, found: OffsetStores, query: OffsetQuery) -> list[OffsetViews | PlainViews]:
    """Return the views of each connector; if the query names stores, only of the keys that one of them has."""
    views: list[OffsetViews | PlainViews] = []
    for connector, gone in _connectors(app, found, query):
        stores = found.of(connector)
        store = stores[GLOBAL]
        is_all = GLOBAL in (query.stores or (GLOBAL,)) and [*stores] == [GLOBAL]
        if is_all and (plain := plain_views(store, connector, gone=gone)) is not None:
            views.append(plain)
        else:
            own, rows = DEDICATED in stores, found.rows(connector)
            views.append(offset_views(rows, connector, dedicated_in_use=own, gone=gone, only=query.stores))
    return views


def _connectors(app: App, found: OffsetStores, query: OffsetQuery) -> Iterator[tuple[str, bool]]:
    """Yield the connectors of the query, and whether each is gone."""
    connectors = sorted(set(query.connectors)) or found.connectors()
    for done, connector in enumerate(connectors, start=1):
        yield connector, found.dedicated.is_gone(connector)
        app.on_event(Event("comparing stores", done, len(connectors), "connectors"))


def _members(app: App, views: Sequence[OffsetView]) -> list[dict[str, Any]]:
    now_ms = app.clock.now_ms()
    return [view_members(view, now_ms=now_ms) for view in views]


def _ignored(found: OffsetStores) -> list[IgnoredOffsetRecord]:
    return [ignored for store in found.stores.values() for ignored in store.ignored]


def _summary(found: OffsetStores, views: Sequence[OffsetViews | PlainViews]) -> dict[str, int]:
    return {
        "connectors": sum(bool(of_connector) for of_connector in views),
        "source_partitions": sum(map(len, views)),
        "not_seen_at_runtime": sum(of_connector.unseen_at_runtime() for of_connector in views),
        "ignored_keys": len(_ignored(found)),
    }


def _all_problems(app: App, found: OffsetStores, views: Sequence[OffsetViews | PlainViews]) -> list[Problem]:
    return [*_listing_problems(app, found), *_gone_problems(views)]


def _gone_problems(views: Sequence[OffsetViews | PlainViews]) -> list[Problem]:
    """Warn of offsets without a connector: a new connector of that name would use them again."""
    gone = [of_connector.connector for of_connector in views if of_connector.gone and of_connector.is_live()]
    if not gone:
        return []
    shown = ", ".join(gone[:_MOST_NAMED]) + (f" and {len(gone) - _MOST_NAMED} more" if len(gone) > _MOST_NAMED else "")
    message = f"Connect has no connector {shown}, and its offsets are still here"
    hint = (
        "A connector that is created with this name goes on from the offsets in the topic that it will use, and reads "
        f"nothing from before them. For a new beginning: `eosctl offsets reset --connector {shell_word(gone[0])} "
        "--all-partitions`. If the connector does exist, -u or --config-topic is of another group."
    )
    return [Problem(codes.CONNECTOR_GONE, message, hint=hint)]


def _listing_problems(app: App, found: OffsetStores) -> list[Problem]:
    """Return what could not be seen, and the open transactions that hide it."""
    open_ones, unknown = find_open_transactions(app, found.stuck())
    named = [open_transaction_finding(transaction, now_ms=app.clock.now_ms()) for transaction in open_ones]
    hidden = [Problem(it.code, f"{it.subject}: {it.message}", hint=it.fix).as_warning() for it in named]
    return [*found.problems(), *hidden, *unknown]
