"""The journal of offset writes, one per cluster: which write was begun last, and whether its end was seen.

It is also the lock that keeps two eosctl of one machine from writing offsets of a cluster at the same time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import Any

from eosctl.app import App
from eosctl.core.wording import counted
from eosctl.report import Problem, rfc3339
from eosctl.state.backups import undo_command
from eosctl.state.journal import Journal


def offsets_journal(app: App, cluster_id: str) -> Journal:
    """Where the writes to `cluster_id` are written down."""
    digest = hashlib.sha256(cluster_id.encode()).hexdigest()[:8]
    return Journal(app.state_dir / "journals" / f"offsets-writes-{digest}.ndjson", app.clock)


def cut_off_problems(app: App, cluster_id: str) -> list[Problem]:
    """A warning for the last write, if its run ended before the write was known to be done; raises EosctlError."""
    last: Mapping[str, Any] | None = None
    for entry in offsets_journal(app, cluster_id).entries():
        last = entry if entry.get("event") == "begin" else None
    if last is None:
        return []
    backup = str(last.get("backup"))
    offsets = counted(int(last.get("offsets", 0)), "offset")
    when = rfc3339(int(last["time_ms"]))
    message = f"{last.get('name')} of {when} ({offsets}) was cut off before its end was seen"
    undo = undo_command(Path(backup))
    hint = f"`eosctl offsets verify {quote(backup)}` tells what of it is there; `{undo}` takes it back."
    return [Problem("write_cut_off", message, hint=hint, severity="warning")]
