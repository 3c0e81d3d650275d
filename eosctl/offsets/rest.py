"""`offsets get --rest`: compares what a worker answers for a connector's offsets (KIP-875) with the topics.

The worker finds an offset by the key bytes that it would write itself. It lists a key in another spelling with null,
and changes it under its own spelling. So the report shows both, and where they differ.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum, unique

from msgspec import UNSET
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.configs.records import UnparsableValueError, decode_value
from eosctl.core.offsets.records import OffsetKey, decode_key, shown_json
from eosctl.core.offsets.views import (
    OffsetView,
)
from eosctl.core.records import Record
from eosctl.core.wording import counted
from eosctl.group.belonging import connectors_of
from eosctl.group.gather import discover_urls
from eosctl.offsets import codes
from eosctl.offsets.rows import (
    OFFSETS_GET_REST,
    Effective,
    GetData,
    GetRow,
    GetSummary,
    RestPart,
)
from eosctl.report import Problem, Report


@unique
class RestStatus(StrEnum):
    """The relation of a worker's answer to the runtime view of a key."""

    SAME = "same"
    NULL = "null"
    DIFFERS = "differs"
    NOT_LISTED = "not_listed"
    ONLY_REST = "only_rest"


def compare_with_rest(
    app: App, report: Report, views: Sequence[OffsetView], connectors: Sequence[str], *, whole: bool
) -> Report:
    """Add a `rest` member to each row of `report`: the worker's offset, and its relation to the runtime view.

    With `whole`, source partitions that only the worker knows become rows too, without a key. Raises NotFoundError for
    a connector that the worker does not know, RefusedError for a worker of another cluster or group; needs Kafka 3.5.
    """
    worker = app.worker((app.target.connect_urls or tuple(discover_urls(app)))[0])
    connectors_of(app, worker)
    listed = {
        _identity(connector, entry.get("partition")): (connector, entry)
        for connector in dict.fromkeys(connectors)
        for entry in worker.offsets(connector)
    }
    rows: list[GetRow] = []
    for view, row in zip(views, report.rows_of(GetRow), strict=True):
        entry = listed.get(view.key.identity, (None, None))[1]
        rows.append(replace(row, rest=_member(_status(view.runtime, entry), entry)))
    known = {view.key.identity for view in views}
    unknown = [pair for identity, pair in listed.items() if whole and identity not in known]
    rows += [_only_rest(connector, entry) for connector, entry in unknown]
    differing = sum(row.rest is not UNSET and row.rest.status != RestStatus.SAME for row in rows)
    return replace(
        report,
        kind=OFFSETS_GET_REST,
        rows=rows,
        summary=replace(report.summary_of(GetSummary), rest_differing=differing),
        data=replace(report.data_of(GetData), rest_url=worker.url),
        problems=[*report.problems, *_problems(differing, worker.url)],
    )


def _identity(connector: str, partition: object) -> str:
    key = decode_key(json.dumps([connector, partition]).encode())
    return key.identity if isinstance(key, OffsetKey) else json.dumps([connector, partition], sort_keys=True)


def _status(runtime: Record | None, entry: Mapping[str, object] | None) -> RestStatus:
    if runtime is None:
        return RestStatus.SAME if entry is None or entry.get("offset") is None else RestStatus.DIFFERS
    if entry is None:
        return RestStatus.NOT_LISTED
    if entry.get("offset") is None:
        return RestStatus.NULL
    try:
        return RestStatus.SAME if decode_value(runtime.value) == entry["offset"] else RestStatus.DIFFERS
    except UnparsableValueError:
        return RestStatus.DIFFERS


def _member(status: RestStatus, entry: Mapping[str, object] | None) -> RestPart:
    return RestPart(status=status.value, offset=shown_json(entry.get("offset")) if entry else None)


def _only_rest(connector: str, entry: Mapping[str, object]) -> GetRow:
    return GetRow(
        connector=connector,
        source_partition=shown_json(entry.get("partition")),
        key=None,
        stores={"global": None, "dedicated": None},
        effective=Effective(documented=None, runtime=None),
        age_ms=None,
        flags=[],
        rest=_member(RestStatus.ONLY_REST, entry),
    )


def _problems(differing: int, url: str) -> list[Problem]:
    if not differing:
        return []
    message = (
        f"the worker at {url} answers something else than the topics hold for {counted(differing, 'source partition')}"
    )
    hint = "null: it looks under another spelling of the key, so PATCH and DELETE would change the wrong one."
    return [Problem(codes.REST_DIFFERS, message, hint=hint)]
