"""The journal of a command, and the execution of steps with it, so that a killed run can be continued.

A journal has the steps that a command has begun and ended: JSON lines in one file, synced one by one, readable by its
owner only. Each command defines its events: it has a class for each event that it reads again, with the members of the
line. Later members have defaults, so that the journals of older versions can be read.

For the execution a feature supplies its steps, and the journal entries of each. It takes the lock, checks again what
the plan is based on, and writes a journal entry before and after each step. Ctrl-C and errors end the work with the
result so far; everything else passes through, like a kill.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.kept.plan_file import WrongMemberError, typed
from eosctl.core.wording import rfc3339
from eosctl.deadline import Clock, Deadline
from eosctl.errors import EosctlError, ExitCode, InterruptedByUserError, RefusedError
from eosctl.machine.files import open_own, own_folder, read_own, sync_directory
from eosctl.report import Json, Problem
from eosctl.state import codes
from eosctl.state.audit_file import is_locked, lock_now

T = TypeVar("T")
_POLL_S = 0.2
_HOLD = "hold"
"""The event of taking the lock, with the process id; it is not the command's."""


class _Hold(Struct, frozen=True):
    pid: int
    time_ms: int


class EndEntry(Struct, frozen=True):
    """The last entry of a completed run."""

    time_ms: int


class Journal(Struct, frozen=True):
    """The journal at `path`, which need not exist yet."""

    path: Path
    clock: Clock

    def entries(self) -> list[Mapping[str, object]]:
        """Return the command's entries; a line that a crash cut off counts as not written. Raise EosctlError."""
        return [entry for entry in self._lines() if entry.get("event") != _HOLD]

    def read(self, kinds: Mapping[str, type[T]]) -> list[T]:
        """Return the command's entries, each event as a value of its class; omit events without one.

        Raises EosctlError if the file can't be read, or if an entry does not match its class.
        """
        found = [(number, kinds.get(str(entry.get("event"))), entry) for number, entry in enumerate(self.entries(), 1)]
        return [self._typed(number, kind, entry) for number, kind, entry in found if kind is not None]

    def _typed(self, number: int, kind: type[T], entry: Mapping[str, object]) -> T:
        try:
            return typed(entry, kind)
        except WrongMemberError as exc:
            raise EosctlError(
                f"cannot read {self.path}: entry {number} ({entry['event']}): {exc}",
                hint="Somebody changed it, or another version of eosctl wrote it: run that one, or correct the entry.",
            ) from exc

    def _lines(self) -> list[Mapping[str, object]]:
        try:
            lines = read_own(self.path).splitlines()
        except FileNotFoundError:
            return []
        except OSError as exc:
            hint = getattr(exc, "hint", "Check its rights.")
            raise EosctlError(f"cannot read {self.path}: {exc.strerror or exc}", hint=hint) from exc
        return [entry for entry in map(_entry, lines) if entry is not None]

    def write(self, event: str, **members: Json) -> None:
        """Append `{"event", "time_ms", **members}` and wait until it is on the disk; raise EosctlError."""
        line = json.dumps({"event": event, "time_ms": self.clock.now_ms(), **members}, ensure_ascii=False)
        try:
            with open(self._open(), "a+b") as file:
                file.seek(0)
                file.write(_line_break_after(file.read()) + line.encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as exc:
            raise self._unwritable(exc) from exc

    def close(self, event: str = "end", **members: Json) -> list[Problem]:
        """Write the last entry of a run; a full disk is only a problem, as the run's work is done."""
        try:
            self.write(event, **members)
        except EosctlError as exc:
            hint = "The next run says that this one was cut off; it was not."
            return [Problem(codes.JOURNAL_NOT_CLOSED, exc.message, hint=hint)]
        return []

    @contextmanager
    def hold(self, what: str, *, until: Deadline | None = None) -> Iterator[None]:
        """Keep every other eosctl on this machine from `what` meanwhile; the lock ends with the process.

        Wait for the lock until that deadline, if one is given. Raises RefusedError if another one has it, EosctlError
        if the file can't be created.
        """
        rounds = (None,) if until is None else until.rounds(_POLL_S)
        try:
            descriptor = self._open()
        except OSError as exc:
            raise self._unwritable(exc) from exc
        try:
            if not any(lock_now(descriptor) for _ in rounds):
                raise self._held(what, self._holder())
            self.write(_HOLD, pid=os.getpid())
            yield
        finally:
            os.close(descriptor)

    def refuse_held(self, what: str) -> None:
        """Raise RefusedError if another eosctl has the lock now; for plans, which create no file."""
        holder = self.holder()
        if holder is not None:
            raise self._held(what, holder)

    def holder(self) -> str | None:
        """Describe the holder of the lock; return None if it is free. Raise EosctlError."""
        try:
            descriptor = open_own(self.path)
        except FileNotFoundError:
            return None
        except OSError as exc:
            hint = getattr(exc, "hint", "Check its rights.")
            raise EosctlError(f"cannot read {self.path}: {exc.strerror or exc}", hint=hint) from exc
        try:
            return self._holder() if is_locked(descriptor) else None
        finally:
            os.close(descriptor)

    def _holder(self) -> str:
        last = next((entry for entry in reversed(self._lines()) if entry.get("event") == _HOLD), None)
        try:
            held = typed(last, _Hold)
        except WrongMemberError:
            return "process unknown"
        return f"process {held.pid}, since {rfc3339(held.time_ms)}"

    def _held(self, what: str, holder: str) -> RefusedError:
        return RefusedError(
            f"another eosctl is at work on {what} ({holder}); nothing was written",
            hint=f"Wait for it, or end it; the lock is on {self.path}.",
        )

    def _open(self) -> int:
        own_folder(self.path.parent)
        is_new = not self.path.exists()
        descriptor = open_own(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        if is_new:
            sync_directory(self.path.parent)
        return descriptor

    def _unwritable(self, exc: OSError) -> EosctlError:
        hint = getattr(exc, "hint", "Check space and rights, then run again.")
        return EosctlError(f"cannot write {self.path}: {exc.strerror or exc}", hint=hint)


def _line_break_after(content: bytes) -> bytes:
    """Return the line break that a line cut off by a crash needs."""
    return b"\n" if content and not content.endswith(b"\n") else b""


def _entry(line: bytes) -> Mapping[str, object] | None:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def journal_of(app: App, command: str, subject: str, *, cluster_id: str) -> Journal:
    """Return the journal of `command` (such as `offsets-switch`) on one subject (such as a connector) of one group."""
    identity = json.dumps([cluster_id, app.target.require_group_id(), subject])
    digest = hashlib.sha256(identity.encode()).hexdigest()[:8]
    return Journal(app.state_dir / "journals" / f"{_readable(command, subject)}-{digest}.ndjson", app.clock)


def journals_of_any_group(app: App, command: str, subject: str) -> list[Journal]:
    """Return the journals of `command` on a subject of that name, or one that is spelled alike, in whatever group."""
    paths = sorted((app.state_dir / "journals").glob(f"{_readable(command, subject)}-{'[0-9a-f]' * 8}.ndjson"))
    return [Journal(path, app.clock) for path in paths]


def _readable(command: str, subject: str) -> str:
    readable = re.sub(r"[^A-Za-z0-9._-]", "_", subject)[:80]
    return f"{command}-{readable}"


Done = TypeVar("Done")


class Note(Struct, frozen=True):
    """One entry of a journal; a feature defines its events and members, and reads them again."""

    event: str
    members: Mapping[str, Json] = {}


class Step(Struct, Generic[Done], frozen=True):
    """One step: `before` returns the entry of its beginning, `run` does it, `after` returns the entry of its end.

    `before` None: the step may begin without an entry.
    """

    name: str
    run: Callable[[], Done]
    before: Callable[[], Note | None] | None = None
    after: Callable[[Done], Note | None] | None = None


class Progress(Struct, Generic[Done], frozen=True):
    """The progress of a work: the result of each completed step, by name, and the error that ended it.

    `failed` is the step that did not end; None if the error came between two steps. `problems` are those of closing.
    """

    done: Mapping[str, Done]
    error: EosctlError | None = None
    failed: str | None = None
    problems: tuple[Problem, ...] = ()

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended it."""
        return self.error is not None and self.error.exit_code is ExitCode.INTERRUPTED

    def exit_code(self, *, touched: bool) -> ExitCode:
        """Return the report's exit code; `touched`: something was changed before the error."""
        if self.error is None:
            return ExitCode.OK
        return ExitCode.PARTIAL if touched and not self.interrupted else self.error.exit_code


class Work(Struct, Generic[Done], frozen=True):
    """Steps under one lock; the next step is requested after the one before has ended and is in the journal.

    `subject` is what the journal's lock protects; `locks` are further ones. `recheck` raises if the plan does not hold
    any more. `begin` returns the first entry. `close` closes the journal in a special way; by default it is closed if
    every step ended. `journal` None: the cluster alone shows the progress, and steps have no entries.
    """

    steps: Callable[[], Iterable[Step[Done]]]
    recheck: Callable[[], None]
    journal: Journal | None = None
    subject: str = ""
    begin: Callable[[], Note | None] = lambda: None
    close: Callable[[Progress[Done]], Sequence[Problem]] | None = None
    locks: Sequence[tuple[Journal, str]] = ()

    def note(self, entry: Note | None) -> None:
        """Write the entry and wait until it is on the disk; raise EosctlError."""
        if self.journal is not None and entry is not None:
            self.journal.write(entry.event, **entry.members)


def carry_out(work: Work[Done]) -> Progress[Done]:
    """Run the steps until one fails, or Ctrl-C.

    Raises what `recheck` and `begin` raise, and RefusedError while another eosctl has one of the locks: then no step
    was begun.
    """
    with ExitStack() as held:
        own = [] if work.journal is None else [(work.journal, work.subject)]
        for journal, subject in (*own, *work.locks):
            held.enter_context(journal.hold(subject))
        work.recheck()
        work.note(work.begin())
        progress = _go_through(work)
        return replace(progress, problems=tuple(_closed(work, progress)))


def _go_through(work: Work[Done]) -> Progress[Done]:
    done: dict[str, Done] = {}
    at: str | None = None
    try:
        for step in work.steps():
            at = step.name
            work.note(step.before() if step.before else None)
            ended = step.run()
            work.note(step.after(ended) if step.after else None)
            done[step.name], at = ended, None
    except EosctlError as exc:
        return Progress(done, exc, at)
    except KeyboardInterrupt:
        return Progress(done, InterruptedByUserError("interrupted"), at)
    return Progress(done)


def _closed(work: Work[Done], progress: Progress[Done]) -> Sequence[Problem]:
    if work.close is not None:
        return work.close(progress)
    return work.journal.close() if work.journal is not None and progress.error is None else ()
