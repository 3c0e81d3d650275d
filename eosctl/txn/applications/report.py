"""The operation `txn applications`: one row per application with transactional ids. Reads only; keeps the counts.

The number of ids per application at the last look is in one file per cluster, which is replaced atomically.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import msgspec
from msgspec import Struct

from eosctl.app import App
from eosctl.core.ids import TransactionalId
from eosctl.core.kept.plan_file import json_of, typed
from eosctl.core.transactions import KafkaFault
from eosctl.core.wording import counted, rfc3339
from eosctl.machine.files import own_folder, read_own, write_whole
from eosctl.report import Problem, Report
from eosctl.txn import codes
from eosctl.txn.applications.gather import (
    ApplicationFacts,
    BrokerLimits,
    ClusterIds,
    describe_some,
    facts_of,
    look_at_cluster,
    remarks_of,
)
from eosctl.txn.applications.rows import TXN_APPLICATIONS, ApplicationRow, ApplicationsSummary, ReadingPart
from eosctl.txn.applications.rules import ApplicationIds, applications_of, sharing
from eosctl.txn.report import hidden_ids_warning, missing_ids_problems, txn_report

_FOLDER = "applications"
_VERSION = 1


class Seen(Struct, frozen=True):
    """The counts of one look: the number of ids per application key."""

    looked_at_ms: int
    ids: dict[str, Annotated[int, msgspec.Meta(ge=0)]]
    version: int = _VERSION


def read_seen(app: App, cluster_id: str) -> Seen | None:
    """Read the last look at this cluster; return None if there is none, or if its file can't be read or parsed."""
    try:
        found = typed(json_of(read_own(_path(app, cluster_id))), Seen)
    except (OSError, ValueError):
        return None
    return found if found.version == _VERSION else None


def keep_seen(app: App, cluster_id: str, seen: Seen) -> None:
    """Replace the last look by this one; if that raises OSError, the last one is still there."""
    own_folder(app.state_dir, _FOLDER)
    write_whole(_path(app, cluster_id), lambda file: file.write(msgspec.json.encode(seen)))


def _path(app: App, cluster_id: str) -> Path:
    return app.state_dir / _FOLDER / f"{quote(cluster_id, safe='')}.json"


_MOST_NAMED = 5


class ApplicationsRequest(Struct, frozen=True):
    """The options: `describe_all` describes every id, not a sample per application; `remember` keeps the counts."""

    describe_all: bool = False
    remember: bool = True


def list_applications(app: App, request: ApplicationsRequest) -> Report:
    """Report one row per application; exit with 7 if a coordinator can't be asked, as its ids are in no row then."""
    with app.transactions() as admin:
        cluster = look_at_cluster(app, admin)
        applications = applications_of(cluster.listings.found, cluster.known)
        described, faults = describe_some(app, admin, applications, everything=request.describe_all)
    before = read_seen(app, cluster.cluster_id)
    shared = sharing(applications)
    counts, now_ms = None if before is None else before.ids, app.clock.now_ms()
    facts = [
        facts_of(each, described, cluster.limits, counts, shared.get(each.key(), ()), now_ms=now_ms)
        for each in applications
    ]
    rows = [_row(each, cluster.limits) for each in facts]
    problems = [
        *hidden_ids_warning(app, rows),
        *cluster.problems,
        *_remark_warnings(facts, cluster.limits),
        *_not_described(faults),
        *missing_ids_problems(cluster.listings),
        *(_keep_counts(app, cluster, applications) if request.remember else ()),
    ]
    return txn_report(
        app,
        TXN_APPLICATIONS,
        rows,
        cluster_id=cluster.cluster_id,
        summary=_summary(rows, cluster, before),
        problems=problems,
        faults=[*cluster.listings.missing, *faults.values()],
        judged=1,  # what no coordinator answers is an error, not a report
    )


def _row(facts: ApplicationFacts, limits: BrokerLimits) -> ApplicationRow:
    application, reading = facts.application, facts.application.reading
    return ApplicationRow(
        application=application.name,
        kind=application.kind,
        sure=application.sure,
        could_be=[ReadingPart(product=each.product, name=each.name) for each in application.could_be],
        group_id=reading.group_id if reading is not None else None,
        connector=reading.connector if reading is not None else None,
        guarantee=application.guarantee,
        naming=application.naming,
        ids=len(application.ids),
        open=facts.open,
        oldest_open=facts.oldest_id,
        oldest_open_started_ms=facts.oldest_started_ms,
        oldest_open_age_ms=facts.oldest_age_ms,
        members=application.firsts,
        highest=application.highest,
        described=facts.described,
        timeout_ms_min=facts.timeout_ms_min,
        timeout_ms_max=facts.timeout_ms_max,
        epoch_max=facts.epoch_max,
        grown_by=facts.grown_by,
        last_started_ms=facts.last_started_ms,
        last_started=rfc3339(facts.last_started_ms),
        expires_ms=facts.expires_ms,
        expires=rfc3339(facts.expires_ms),
        memory_bytes=facts.memory_bytes,
        shares_prefix_with=list(facts.shares),
        remarks=[str(code) for code in remarks_of(facts, limits)],
    )


def _summary(rows: Sequence[ApplicationRow], cluster: ClusterIds, before: Seen | None) -> ApplicationsSummary:
    return ApplicationsSummary(
        applications=len(rows),
        ids=sum(row.ids for row in rows),
        open=sum(row.open for row in rows),
        memory_bytes=sum(row.memory_bytes for row in rows),
        max_timeout_ms=cluster.limits.max_timeout_ms,
        expiration_ms=cluster.limits.expiration_ms,
        transaction_version=cluster.limits.transaction_version,
        last_look_ms=None if before is None else before.looked_at_ms,
        last_look=None if before is None else rfc3339(before.looked_at_ms),
    )


def _remark_warnings(facts: Sequence[ApplicationFacts], limits: BrokerLimits) -> Iterator[Problem]:
    """Yield one warning per remark, with the names of the applications."""
    for code in codes.REMARKS:
        names = [each.application.name for each in facts if code in remarks_of(each, limits)]
        if names:
            shown = ", ".join(name or "(ids with nothing in common)" for name in names[:_MOST_NAMED])
            more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
            yield Problem(code, f"{shown}{more}: {code.meaning}", code.next)


def _not_described(faults: Mapping[TransactionalId, KafkaFault]) -> Iterator[Problem]:
    """Yield one warning for all ids that no coordinator described, with the first reason."""
    if faults:
        (why, *_) = faults.values()
        message = f"{counted(len(faults), 'transactional id')} could not be described: {why}"
        yield Problem(codes.NOT_CHECKED, message, "Fix that, then run again.")


def _keep_counts(app: App, cluster: ClusterIds, applications: Sequence[ApplicationIds]) -> Iterator[Problem]:
    """Keep the counts, unless some ids are missing: they would look new at the next look."""
    if cluster.listings.missing:
        return
    counts = {each.key(): len(each.ids) for each in applications}
    try:
        keep_seen(app, cluster.cluster_id, Seen(app.clock.now_ms(), counts))
    except OSError as error:
        message = f"what was counted can't be kept in {app.state_dir}: {error.strerror or error}"
        yield Problem(codes.LOOK_NOT_KEPT, message, codes.LOOK_NOT_KEPT.next)
