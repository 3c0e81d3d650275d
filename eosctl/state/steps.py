"""Executes steps with a journal: a feature supplies its steps, and the journal entries of each.

Takes the lock, checks again what the plan is based on, and writes a journal entry before and after each step. Ctrl-C
and errors end the work with the result so far; everything else passes through, like a kill.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from eosctl.errors import EosctlError, ExitCode, InterruptedByUserError
from eosctl.report import Json, Problem
from eosctl.state.journal import Journal

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
