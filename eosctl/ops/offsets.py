"""`offsets list | get | diff`: looks at source offsets across their stores; writes nothing."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from eosctl.core.absent_group import judge_absence
from eosctl.core.connect_group import DEAD, connect_group
from eosctl.core.offset_findings import open_transaction_finding
from eosctl.core.offset_records import OffsetKey, decode_key
from eosctl.core.offset_views import DEDICATED, GLOBAL, DiffStatus, OffsetView, diff_status, offset_views
from eosctl.errors import (
    DeadlineError,
    ExitCode,
    NotFoundError,
    UnauthorizedError,
    UnreachableError,
    UsageError,
)
from eosctl.events import Event
from eosctl.ops.app import App
from eosctl.ops.offset_rest import compare_with_rest
from eosctl.ops.offset_rows import cell_row, ignored_rows, view_row
from eosctl.ops.offset_stores import OffsetStores, gather_stores
from eosctl.ops.open_transactions import find_open_transactions
from eosctl.ops.workers import answering_url, read_group
from eosctl.report import Json, Problem, Report, Row


@dataclass(frozen=True, slots=True)
class OffsetQuery:
    """Whose offsets, and where to look.

    No `connectors` means all. `stores` (`global`, `dedicated`, TOPIC, TOPIC@PROFILE) keeps the source partitions that
    one of them has. `dedicated_topic` (`offsets-{connector}`) is assumed for connectors whose config names none.
    """

    connectors: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()
    dedicated_topic: str | None = None


def list_offsets(app: App, query: OffsetQuery) -> Report:
    """Every source partition with its value in each store; exit 0 whatever is found."""
    found = _gather(app, query)
    views = [
        view
        for view in _views(app, found, query)
        if not query.stores or any(view.cells.get(name) is not None for name in query.stores)
    ]
    return _report(app, found, "offsets-list", views, _rows(app, views))


def get_offsets(app: App, query: OffsetQuery, *, partition: str | None = None, rest: bool = False) -> Report:
    """One connector's source partitions, or the one that `partition` (JSON) names in any spelling.

    With `rest`, each row also tells what a worker answers (KIP-875), and whether that is what a task would get.
    Raises NotFoundError when no store has that source partition.
    """
    found = _gather(app, query)
    views = _views(app, found, query)
    if partition is not None:
        wanted = {_wanted_identity(connector, partition) for connector in query.connectors}
        views = [view for view in views if view.key.identity in wanted]
        if not views:
            raise NotFoundError(
                f"no offset of {', '.join(query.connectors)} for source partition {partition}",
                hint="`eosctl offsets get --connector NAME` shows all; numbers and texts are different.",
            )
    report = _report(app, found, "offsets-get", views, _rows(app, views))
    return compare_with_rest(app, report, views, query.connectors, whole=partition is None) if rest else report


def diff_offsets(app: App, query: OffsetQuery, *, left: str = GLOBAL, right: str = DEDICATED) -> Report:
    """Compares two stores of the connectors; exit 3 when a source partition is not the same in both."""
    found = _gather(app, OffsetQuery(query.connectors, (*query.stores, left, right), query.dedicated_topic))
    for connector in query.connectors or found.connectors():
        for side in (left, right):
            require_store(found, connector, side)
        refuse_same(found, connector, left, right)
    views = _views(app, found, query)
    pairs = [(view.cells.get(left), view.cells.get(right)) for view in views]
    statuses = [diff_status(*pair) for pair in pairs]
    rows = [
        {**row, "left": cell_row(pair[0]), "right": cell_row(pair[1]), "status": status.value}
        for row, pair, status in zip(_rows(app, views), pairs, statuses, strict=True)
    ]
    counts = Counter(statuses)
    differing = len(statuses) - counts[DiffStatus.SAME]
    return Report(
        kind="offsets-diff",
        rows=rows,
        summary={"differing": differing, "counts": {status.value: counts[status] for status in DiffStatus}},
        data={"left": left, "right": right, "clusters": {side: cluster_of(found, side) for side in (left, right)}},
        target=report_target(app, found),
        problems=_problems(app, found),
        exit_code=ExitCode.FINDINGS if differing else ExitCode.OK,
    )


def report_target(app: App, found: OffsetStores) -> Row:
    """The envelope's `target`."""
    return {"kafka_cluster_id": found.cluster_id, "group_id": app.target.group_id}


def cluster_of(found: OffsetStores, name: str) -> str:
    """The id of the cluster that a store is on."""
    return found.away[name].cluster_id if name in found.away else found.cluster_id


def refuse_same(found: OffsetStores, connector: str, left: str, right: str) -> None:
    """Raises UsageError where the store of a profile turns out to be the other one: cluster ids tell, not names."""
    stores = found.of(connector)
    if {left, right} & set(found.away) and found.place(stores[left], left) == found.place(stores[right], right):
        raise UsageError(
            f"{left} and {right} are one topic, {found.place(stores[left], left)[1]} on cluster "
            f"{cluster_of(found, left)}",
            hint="Check the profile's bootstrap_server.",
        )


def require_store(found: OffsetStores, connector: str, name: str) -> None:
    """Raises UsageError when `connector` has no dedicated topic although one is asked for."""
    if name == DEDICATED and found.dedicated.of(connector) is None:
        raise UsageError(
            f"connector {connector} has no offsets topic of its own (offsets.storage.topic)",
            hint="Name the one it will get: --dedicated-topic 'offsets-{connector}'.",
        )


def _gather(app: App, query: OffsetQuery) -> OffsetStores:
    _require_group(app)
    extra = tuple(name for name in query.stores if name not in (GLOBAL, DEDICATED))
    return gather_stores(app, connectors=query.connectors or None, pattern=query.dedicated_topic, extra=extra)


def _require_group(app: App) -> None:
    """Raises NotFoundError where a worker answers, and the group that is named beside it does not exist.

    Looking at offsets needs no group, and no right to describe it; who mistypes one here goes on to a write with it.
    """
    group_id = app.target.group_id
    if group_id is None or not app.target.connect_urls:
        return
    try:
        with app.transactions() as admin:
            raw = admin.describe_group(group_id)
        state = connect_group(raw).state if raw.state != DEAD else read_group(app, gone_ok=True)[0].state
    except (UnauthorizedError, UnreachableError, DeadlineError):
        return
    if state == DEAD:
        judge_absence(group_id, state=state, answering=answering_url(app), missing=None)


def _views(app: App, found: OffsetStores, query: OffsetQuery) -> list[OffsetView]:
    connectors = sorted(set(query.connectors)) or found.connectors()
    views = []
    for done, connector in enumerate(connectors, start=1):
        stores = found.of(connector)
        views += offset_views(stores, connector, dedicated_in_use=DEDICATED in stores)
        app.on_event(Event("comparing stores", done, len(connectors), "connectors"))
    return views


def _rows(app: App, views: Sequence[OffsetView]) -> list[dict[str, Json]]:
    now_ms = app.clock.now_ms()
    return [view_row(view, now_ms=now_ms) for view in views]


def _report(app: App, found: OffsetStores, kind: str, views: Sequence[OffsetView], rows: Sequence[Row]) -> Report:
    ignored = [each for store in found.stores.values() for each in store.ignored]
    return Report(
        kind=kind,
        rows=rows,
        summary={
            "connectors": len({view.key.connector for view in views}),
            "source_partitions": len(views),
            "not_seen_at_runtime": sum(view.documented is not view.runtime for view in views),
            "ignored_keys": len(ignored),
        },
        data={"ignored": ignored_rows(ignored)},
        target=report_target(app, found),
        problems=_problems(app, found),
    )


def _problems(app: App, found: OffsetStores) -> list[Problem]:
    """What could not be seen, and who holds open the transactions that hide it."""
    open_ones, unknown = find_open_transactions(app, found.stuck())
    named = [open_transaction_finding(each, now_ms=app.clock.now_ms()) for each in open_ones]
    hidden = [Problem(it.code, f"{it.subject}: {it.message}", hint=it.fix, severity="warning") for it in named]
    return [*found.problems(), *hidden, *unknown]


def _wanted_identity(connector: str, partition: str) -> str:
    """The identity of the key that `partition`, as typed by the user, stands for; raises UsageError."""
    key = decode_key(f"[{json.dumps(connector)},{partition}]".encode())
    if not isinstance(key, OffsetKey):
        raise UsageError(f"{partition!r} is not a source partition", hint='Write JSON, say {"filename":"/tmp/x"}.')
    return key.identity
