"""The journal of `connectors create`: the steps of a run that was begun and not ended, and what it was to give."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.ids import connector_path
from eosctl.errors import RefusedError
from eosctl.foreign import shell_words
from eosctl.state.journal import EndEntry, Journal, journal_of

COMMAND = "connectors-create"
CREATE, WRITE, CHECK, RESUME, WATCH = STEPS = ("create", "write", "check", "resume", "watch")


class UnfinishedCreate(Struct, frozen=True):
    """A run that was begun and not ended: the steps `started` since it last went on, and the steps `done`.

    What is `done` and started again counts no more. `origin` is where the given offsets come from, in words; None if
    none were given.
    """

    time_ms: int
    done: tuple[str, ...] = ()
    started: tuple[str, ...] = ()
    origin: str | None = None

    @property
    def lacks_offsets(self) -> bool:
        """Whether it was to give the connector offsets, and has not written them: started now, it would start over."""
        return self.origin is not None and WRITE not in self.done

    @property
    def is_unchecked(self) -> bool:
        """Whether it has not seen, since it last went on, that Connect finds the offsets: they may not be there."""
        return CHECK not in self.done

    @property
    def goes_on(self) -> str:
        """The next step of the user."""
        return f"Run the same `connectors create` again{', with --offsets' if self.origin else ''}."

    def way_out(self, journal: Journal) -> str:
        """Return the next step of a user whose connector of that name exists."""
        forget = shell_words("rm", str(journal.path))
        return f"{self.goes_on} If the connector is another one by now, or is to stay as it is: `{forget}`."


class _Step(Struct, frozen=True):
    step: str


class _Start(_Step, frozen=True):
    pass


class _Done(_Step, frozen=True):
    pass


_ENTRIES: Mapping[str, type[UnfinishedCreate | _Start | _Done | EndEntry]] = {
    "begin": UnfinishedCreate,
    "start": _Start,
    "done": _Done,
    "end": EndEntry,
}


def unfinished_create(journal: Journal) -> UnfinishedCreate | None:
    """Return the run in progress, as far as the file shows; raise EosctlError."""
    begun: UnfinishedCreate | None = None
    for entry in journal.read(_ENTRIES):
        match entry:
            case UnfinishedCreate():
                begun = UnfinishedCreate(entry.time_ms, origin=entry.origin)
            case _Start("create") if begun is not None:
                begun = replace(begun, started=(CREATE,), done=tuple(each for each in begun.done if each == WRITE))
            case _Start(step) if begun is not None:
                done = tuple(each for each in begun.done if each != step)
                begun = replace(begun, started=(*begun.started, step), done=done)
            case _Done(step) if begun is not None:
                begun = replace(begun, done=(*begun.done, step))
            case EndEntry():
                begun = None
    return begun


def journal_of_create(app: App, connector: str, *, cluster_id: str) -> Journal:
    """Return the journal of this connector's creation, whose lock keeps other runs away."""
    return journal_of(app, COMMAND, connector, cluster_id=cluster_id)


def refuse_without_offsets(connector: str, begun: UnfinishedCreate | None) -> None:
    """Raise RefusedError where a run was to give the connector offsets, and has not written them."""
    if begun is not None and begun.lacks_offsets:
        raise RefusedError(
            f"creating {connector} was begun with the offsets of {begun.origin}, which it does not have yet: without "
            "them it would not start there; nothing was written",
            hint=f"{begun.goes_on} To begin anew, take away what is there: DELETE {connector_path(connector)}.",
        )
