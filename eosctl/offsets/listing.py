"""`offsets list | get | diff`: looks at source offsets across their stores; writes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from msgspec import Struct

from eosctl.app import App
from eosctl.connectors.dedicated import TOPIC_PROPERTY, describe_unknown
from eosctl.core.offsets.findings import open_transaction_finding
from eosctl.core.offsets.names import DEDICATED, GLOBAL
from eosctl.core.offsets.typed import typed_partition
from eosctl.core.offsets.views import (
    DiffStatus,
    IgnoredOffsetRecord,
    OffsetView,
    OffsetViews,
    diff_status,
    offset_views,
)
from eosctl.errors import NotFoundError, RefusedError, UsageError
from eosctl.events import Event
from eosctl.foreign import shell_word
from eosctl.group.absent import KnownEvidence, require_ever_there
from eosctl.offsets import codes
from eosctl.offsets.comparison import comparison_exit_code, hidden_problem
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
    ListData,
    OffsetsSummary,
    cell_of,
    ignored_parts,
    view_members,
)
from eosctl.offsets.stores.gather import OffsetStores, gather_stores
from eosctl.offsets.view_rows import PlainViews, ViewRows, plain_views
from eosctl.report import Problem, Report, Row
from eosctl.txn.open_transactions import find_open_transactions

_MOST_NAMED = 10


class OffsetQuery(Struct, frozen=True):
    """Whose offsets, and where to look.

    No `connectors` means all. `stores` (`global`, `dedicated`, TOPIC, TOPIC@PROFILE) keeps the source partitions that
    one of them has. `dedicated_topic` (`offsets-{connector}`) is assumed for connectors whose config names none.
    """

    connectors: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()
    dedicated_topic: str | None = None


def list_offsets(app: App, query: OffsetQuery) -> Report:
    """Every source partition with its value in each store; exit 0 whatever is found.

    Of plain keys in a large topic the rows are made of columns.
    """
    found = _gather(app, query)
    views = _views_to_list(app, found, query)
    rows = ViewRows(views, now_ms=app.clock.now_ms())
    ignored = ListData(ignored=ignored_parts(_ignored(found)))
    summary = OffsetsSummary(**_summary(found, views))
    return Report(OFFSETS_LIST, rows, summary, ignored, report_target(app, found), _all_problems(app, found, views))


def get_offsets(app: App, query: OffsetQuery, *, partition: str | None = None, rest: bool = False) -> Report:
    """One connector's source partitions, or the one that `partition` (JSON) names in any spelling.

    With `rest`, each row also reports what a worker answers (KIP-875), and whether that is what a task would get.
    Raises NotFoundError when no store has that source partition.
    """
    found = _gather(app, query)
    of_connectors = _views(app, found, query)
    if partition is not None:
        wanted = {typed_partition(connector, partition).identity for connector in query.connectors}
        of_connectors = [each.of(wanted) for each in of_connectors]
    views = list(chain.from_iterable(of_connectors))
    if partition is not None and not views:
        raise NotFoundError(
            f"no offset of {', '.join(query.connectors)} for source partition {partition}",
            hint="`eosctl offsets get --connector NAME` shows all; numbers and texts are different.",
        )
    rows = [GetRow(**members) for members in _members(app, views)]
    ignored = GetData(ignored=ignored_parts(_ignored(found)))
    summary = GetSummary(**_summary(found, of_connectors))
    problems = _all_problems(app, found, of_connectors)
    report = Report(OFFSETS_GET, rows, summary, ignored, report_target(app, found), problems)
    return compare_with_rest(app, report, views, query.connectors, whole=partition is None) if rest else report


def diff_offsets(
    app: App, query: OffsetQuery, *, left: str = GLOBAL, right: str = DEDICATED, strict: bool = False
) -> Report:
    """Compares two stores of the connectors; exit 3 when a source partition is not the same in both.

    Exit 7, or 3 where it is to be `strict`, when an open transaction hides one in either.
    """
    found = _gather(app, OffsetQuery(query.connectors, (*query.stores, left, right), query.dedicated_topic))
    for connector in query.connectors or found.connectors():
        for side in (left, right):
            require_store(found, connector, side)
        refuse_same(found, connector, left, right)
    views = list(chain.from_iterable(_views(app, found, query)))
    pairs = [(view.cells.get(left), view.cells.get(right)) for view in views]
    statuses = [
        DiffStatus.HIDDEN if _hides(found, view, (left, right)) else diff_status(*pair)
        for view, pair in zip(views, pairs, strict=True)
    ]
    rows = [
        DiffRow(
            **members, left=left_cell and cell_of(left_cell), right=right_cell and cell_of(right_cell), status=status
        )
        for members, (left_cell, right_cell), status in zip(_members(app, views), pairs, statuses, strict=True)
    ]
    counts = Counter(statuses)
    hidden = counts[DiffStatus.HIDDEN]
    differing = len(statuses) - counts[DiffStatus.SAME] - hidden
    return Report(
        kind=OFFSETS_DIFF,
        rows=rows,
        summary=DiffSummary(differing=differing, counts={status.value: counts[status] for status in DiffStatus}),
        data=DiffData(left=left, right=right, clusters={side: cluster_of(found, side) for side in (left, right)}),
        target=report_target(app, found),
        problems=[*_problems(app, found), *([hidden_problem(hidden, len(statuses))] if hidden else [])],
        exit_code=comparison_exit_code(differing=bool(differing), hidden=bool(hidden), strict=strict),
    )


def _hides(found: OffsetStores, view: OffsetView, names: Iterable[str]) -> bool:
    stores = found.of(view.key.connector)
    return any(stores[name].hides(view.key.raw) for name in names)


def report_target(app: App, found: OffsetStores) -> Row:
    """The envelope's `target`."""
    return {"kafka_cluster_id": found.cluster_id, "group_id": app.target.group_id}


def cluster_of(found: OffsetStores, name: str) -> str:
    """The id of the cluster that a store is on: the dedicated one may be on brokers of the connectors' own."""
    if name in found.away:
        return found.away[name].cluster_id
    own = {there.cluster_id for there in found.own.values()} if name == DEDICATED else set()
    return own.pop() if len(own) == 1 and not found.has_dedicated_here() else found.cluster_id


def refuse_same(found: OffsetStores, connector: str, left: str, right: str) -> None:
    """Raises UsageError where the store of a profile turns out to be the other one: cluster ids decide, not names."""
    stores = found.of(connector)
    if {left, right} & set(found.away) and found.place(stores[left], left) == found.place(stores[right], right):
        raise UsageError(
            f"{left} and {right} are one topic, {found.place(stores[left], left)[1]} on cluster "
            f"{cluster_of(found, left)}",
            hint="Check the profile's bootstrap_server.",
        )


def require_store(found: OffsetStores, connector: str, name: str) -> None:
    """Raises UsageError when `connector` has no dedicated topic although one is asked for."""
    if name == DEDICATED and connector in found.dedicated.brokers and connector not in found.own:
        raise RefusedError(
            f"the own offsets of connector {connector} are on Kafka brokers that its config names, and can't be read",
            hint="Make a profile that leads there, and name the store: TOPIC@PROFILE.",
        )
    if name == DEDICATED and found.dedicated.of(connector) is None and connector not in found.own:
        refuse_unknown(found, connector)
        raise UsageError(
            f"connector {connector} has no offsets topic of its own (offsets.storage.topic)",
            hint="Name the one it will get: --dedicated-topic 'offsets-{connector}'.",
        )


def refuse_unknown(found: OffsetStores, connector: str) -> None:
    """Raises RefusedError for a connector that has a topic of its own, of which only its worker knows the name."""
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
    """Raises NotFoundError where the group that was named was never there, while others are.

    Looking at offsets needs no group, and no right to describe it; who mistypes one here goes on to a write with it.
    """
    require_ever_there(app, KnownEvidence(may_be_new=True))


def _views(app: App, found: OffsetStores, query: OffsetQuery) -> list[OffsetViews]:
    """The views of each connector."""
    return [
        offset_views(found.rows(connector), connector, dedicated_in_use=found.has_own(connector), gone=gone)
        for connector, gone in _connectors(app, found, query)
    ]


def _views_to_list(app: App, found: OffsetStores, query: OffsetQuery) -> list[OffsetViews | PlainViews]:
    """The views of each connector; where stores are asked for, of what one of these has."""
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
    """The connectors that are asked for, and whether each is gone."""
    connectors = sorted(set(query.connectors)) or found.connectors()
    for done, connector in enumerate(connectors, start=1):
        yield connector, found.dedicated.is_gone(connector)
        app.on_event(Event("comparing stores", done, len(connectors), "connectors"))


def _members(app: App, views: Sequence[OffsetView]) -> list[dict[str, Any]]:
    now_ms = app.clock.now_ms()
    return [view_members(view, now_ms=now_ms) for view in views]


def _ignored(found: OffsetStores) -> list[IgnoredOffsetRecord]:
    return [each for store in found.stores.values() for each in store.ignored]


def _summary(found: OffsetStores, views: Sequence[OffsetViews | PlainViews]) -> dict[str, int]:
    return {
        "connectors": sum(bool(each) for each in views),
        "source_partitions": sum(map(len, views)),
        "not_seen_at_runtime": sum(each.unseen_at_runtime() for each in views),
        "ignored_keys": len(_ignored(found)),
    }


def _all_problems(app: App, found: OffsetStores, views: Sequence[OffsetViews | PlainViews]) -> list[Problem]:
    return [*_problems(app, found), *_gone_problems(views)]


def _gone_problems(views: Sequence[OffsetViews | PlainViews]) -> list[Problem]:
    """A warning for offsets that nobody uses, and that would be used again by whoever takes the name."""
    gone = [each.connector for each in views if each.gone and each.is_live()]
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


def _problems(app: App, found: OffsetStores) -> list[Problem]:
    """What could not be seen, and who holds open the transactions that hide it."""
    open_ones, unknown = find_open_transactions(app, found.stuck())
    named = [open_transaction_finding(each, now_ms=app.clock.now_ms()) for each in open_ones]
    hidden = [Problem(it.code, f"{it.subject}: {it.message}", hint=it.fix).as_warning() for it in named]
    return [*found.problems(), *hidden, *unknown]
