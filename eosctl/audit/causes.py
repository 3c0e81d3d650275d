"""Likely causes of duplicate or missing records, from the connector's config and the other findings.

A likely cause is a place to look first, and proves nothing by itself. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from eosctl.audit import codes
from eosctl.audit.rows import AuditRow
from eosctl.audit.verdict import KnownProducer

_DROPS = (codes.GAP, codes.MIRROR_GAP)
_REPEATS = (codes.DUPLICATE, codes.MIRROR_DUPLICATE)
_LOSES = (codes.TRANSACTION_TORN, codes.OFFSETS_WITHOUT_RECORDS, codes.COMMIT_MARKERS_MISSING, codes.CRC_WRONG)
_REPEATING = (
    codes.SOURCE_PARTITION_SHARED, codes.FOREIGN_OFFSETS, codes.ZOMBIE_WROTE, codes.SOURCE_OFFSET_WENT_BACK,
    codes.OFFSETS_WITHOUT_TRANSACTION, codes.BATCH_NOT_TRANSACTIONAL, codes.TRANSACTION_WITHOUT_OFFSETS,
)  # fmt: skip


def with_causes(
    rows: Sequence[AuditRow], config: Mapping[str, str], producers: Collection[KnownProducer]
) -> list[AuditRow]:
    """Return the rows, those about records that are missing or twice with what to look at before their own next step.

    `config` is the connector's as it is now.
    """
    codes_found = {row.code for row in rows}
    others = sorted({each.transactional_id or "" for each in producers if each.is_used_by_others} - {""})
    explained = []
    for row in rows:
        if row.code in _DROPS:
            dropped = _dropping(config) if row.code == codes.GAP else ()
            causes = [*_explained(codes_found, _LOSES), *dropped, *_shared(others)]
        elif row.code in _REPEATS:
            causes = [*_explained(codes_found, _REPEATING), *_shared(others)]
        else:
            causes = []
        explained.append(msgspec.structs.replace(row, fix=" ".join([*causes, row.fix])) if causes else row)
    return explained


def _dropping(config: Mapping[str, str]) -> Iterator[str]:
    """Yield causes of dropped records: a source has no dead letter queue, and the offset behind a dropped one is
    committed.
    """
    if config.get("errors.tolerance", "").strip().lower() == "all":
        yield (
            "errors.tolerance=all drops each record at which a converter or transformation fails; the worker's log has "
            "them where errors.log.enable=true."
        )
    else:
        yield (
            "Workers before Kafka 4.0 drop a record after a RetriableException of a converter or transformation, with "
            "errors.tolerance=none too (KAFKA-18073)."
        )
    if config.get("transforms", "").strip():
        yield "A transformation may filter records out."


def _explained(there: Collection[str], by: Sequence[str]) -> Iterator[str]:
    if found := [str(code) for code in by if code in there]:
        yield f"See {', '.join(found)} of this audit first."


def _shared(ids: Sequence[str]) -> Iterator[str]:
    if ids:
        yield f"Another producer may use {', '.join(ids[:3])}: `eosctl txn log` shows each time that an id was taken."
