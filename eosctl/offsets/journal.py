"""The journal of offset writes, one per cluster: the last write that was begun, and whether its end was seen.

It is also the lock that keeps two eosctl of one machine from writing offsets of a cluster at the same time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from eosctl.app import App
from eosctl.core.wording import counted, rfc3339
from eosctl.foreign import arguments
from eosctl.offsets import codes
from eosctl.report import Problem
from eosctl.state.backups import undo_command
from eosctl.state.journal import EndEntry, Journal


def offsets_journal(app: App, cluster_id: str) -> Journal:
    """Return the journal of the writes to `cluster_id`."""
    digest = hashlib.sha256(cluster_id.encode()).hexdigest()[:8]
    return Journal(app.state_dir / "journals" / f"offsets-writes-{digest}.ndjson", app.clock)


class _Begin(Struct, frozen=True):
    name: str
    backup: str
    time_ms: int
    offsets: int = 0


_ENTRIES: Mapping[str, type[_Begin | EndEntry]] = {"begin": _Begin, "end": EndEntry}


def cut_off_problems(app: App, cluster_id: str) -> list[Problem]:
    """Warn of the last write if its run ended before the write was known to be done; raise EosctlError."""
    entries = offsets_journal(app, cluster_id).read(_ENTRIES)
    last = entries[-1] if entries else None
    if not isinstance(last, _Begin):
        return []
    offsets, when = counted(last.offsets, "offset"), rfc3339(last.time_ms)
    message = f"{last.name} of {when} ({offsets}) was cut off before its end was seen"
    undo = undo_command(Path(last.backup))
    hint = f"`eosctl offsets verify {arguments(last.backup)}` shows how much of it was written; `{undo}` takes it back."
    return [Problem(codes.WRITE_CUT_OFF, message, hint=hint)]
