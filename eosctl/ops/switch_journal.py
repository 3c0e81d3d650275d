"""The journal of `offsets switch`: which steps were begun and ended, so that a killed run can be continued.

One file per connector, JSON lines, synced one by one. It is needed for one fact above all that the cluster no longer
tells after the first step: whether the connector was running.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eosctl.errors import EosctlError
from eosctl.ops.app import App
from eosctl.ops.backups import sync_directory
from eosctl.report import Json


@dataclass(frozen=True, slots=True)
class Begun:
    """A switch that was begun and never ended: from where to where, and the state the connector was in."""

    origin: str
    target: str
    state: str
    began_ms: int
    done: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SwitchJournal:
    """`path` need not exist yet."""

    path: Path
    app: App

    def unfinished(self) -> Begun | None:
        """The switch under way, as far as the file tells; a line that a crash cut off counts as not written."""
        begun: Begun | None = None
        for entry in self._entries():
            match entry.get("event"):
                case "begin":
                    begun = _begun(entry)
                case "done" if begun is not None:
                    begun = replace(begun, done=(*begun.done, str(entry["step"])))
                case "end":
                    begun = None
        return begun

    def write(self, event: str, **members: Json) -> None:
        """Appends one line and waits until it is on the disk; raises EosctlError."""
        line = json.dumps({"event": event, "time_ms": self.app.clock.now_ms(), **members}, ensure_ascii=False)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            is_new = not self.path.exists()
            with open(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), "a+b") as file:
                file.write(_line_break_after(self.path) + line.encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
            if is_new:
                sync_directory(self.path.parent)
        except OSError as exc:
            raise EosctlError(
                f"cannot write {self.path}: {exc.strerror or exc}", hint="Check space and rights, then run again."
            ) from exc

    def _entries(self) -> list[Mapping[str, Any]]:
        try:
            lines = self.path.read_bytes().splitlines()
        except FileNotFoundError:
            return []
        except OSError as exc:
            raise EosctlError(f"cannot read {self.path}: {exc.strerror or exc}", hint="Check its rights.") from exc
        return [entry for entry in map(_entry, lines) if entry is not None]


def _line_break_after(path: Path) -> bytes:
    """What closes a last line that a crash cut off."""
    content = path.read_bytes()
    return b"\n" if content and not content.endswith(b"\n") else b""


def _begun(entry: Mapping[str, Any]) -> Begun:
    origin, target, state = (str(entry[name]) for name in ("origin", "target", "state"))
    return Begun(origin, target, state, int(entry["time_ms"]), tuple(entry.get("done") or ()))


def _entry(line: bytes) -> Mapping[str, Any] | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None


def journal_of(app: App, connector: str, *, cluster_id: str) -> SwitchJournal:
    """The journal of one connector of one group."""
    identity = json.dumps([cluster_id, app.target.require_group_id(), connector])
    digest = hashlib.sha256(identity.encode()).hexdigest()[:8]
    readable = re.sub(r"[^A-Za-z0-9._-]", "_", connector)[:80]
    return SwitchJournal(app.state_dir / "journals" / f"offsets-switch-{readable}-{digest}.ndjson", app)
