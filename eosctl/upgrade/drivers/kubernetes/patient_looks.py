"""Retries looks at Kubernetes while its API server does not answer: a wait may last for hours."""

from __future__ import annotations

from types import TracebackType

from eosctl.app import App
from eosctl.deadline import Deadline
from eosctl.errors import DeadlineError, UnreachableError
from eosctl.events import Event


class PatientLooks:
    """The looks of one wait, each in a `with`, which ends early if there is no answer; that is reported once.

    When `deadline` is over, it is raised; all other errors are at once.
    """

    def __init__(self, app: App, deadline: Deadline) -> None:
        self._app, self._deadline = app, deadline
        self._told = False

    def __enter__(self) -> None:
        """Begin a look."""

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _where: TracebackType | None
    ) -> bool:
        if not isinstance(error, UnreachableError | DeadlineError):
            self._told = False
            return False
        if self._deadline.expired():
            return False
        if not self._told:
            self._app.on_event(Event(f"{error.message}; asking again", warning=True))
        self._told = True
        return True
