"""kubectl as a program on PATH: how it is run, and what its failures mean.

Looks at Kubernetes are retried while its API server does not answer: a wait may last for hours.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.clients.hidden_secrets import shown_line
from eosctl.core.kept.plan_file import json_of
from eosctl.deadline import Deadline, Event
from eosctl.errors import DeadlineError, EosctlError, NotFoundError, UnauthorizedError, UnreachableError
from eosctl.foreign import shell_words
from eosctl.upgrade.codes import KUBECTL_RIGHTS
from eosctl.upgrade.drivers.manifests.fields import Manifest, Patch
from eosctl.upgrade.drivers.programs import ProgramError, run_program

_LOOK_S = 30.0


def for_a_look(app: App) -> App:
    """Return an App for one look, with time of its own: the last one of a wait, too, should tell what is missing."""
    return replace(app, deadline=Deadline.after(_LOOK_S, app.clock))


class PatientLooks:
    """The looks of one wait, each in a `with` of its own App, which ends early if there is no answer.

    That is reported once; when `deadline` is over, it is raised. All other errors are at once.
    """

    def __init__(self, app: App, deadline: Deadline) -> None:
        self._app, self._deadline = app, deadline
        self._told = False

    def __enter__(self) -> App:
        """Begin a look."""
        return for_a_look(self._app)

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


_POLL_S = 1.0
_LOG_S, _LINES, _LINE = 10.0, 5, 300  # how long a look at a log may take, and how much is told of it
_NO = re.compile(r"^no( - |$)", re.MULTILINE)  # with the API server's reason, if it gives one
_FORBIDDEN = re.compile(r"\((Forbidden|Unauthorized)\)|must be logged in|forbidden: User", re.IGNORECASE)
_UNREACHABLE = re.compile(
    r"unable to connect to the server|connection to the server \S+ was refused|connection refused|no such host"
    r"|i/o timeout|TLS handshake timeout|no route to host|network is unreachable|certificate signed by unknown"
    r"|context deadline exceeded|was refused - did you specify",
    re.IGNORECASE,
)


class Kubectl(Struct, frozen=True):
    """kubectl in one namespace of one context; None leaves the choice to kubectl."""

    namespace: str | None = None
    context: str | None = None
    kubeconfig: str | None = None

    def words(self, *words: str) -> list[str]:
        """Return the command line, as words."""
        options = (("--kubeconfig", self.kubeconfig), ("--context", self.context), ("--namespace", self.namespace))
        return ["kubectl", *(word for name, value in options if value for word in (name, value)), *words]

    def line(self, *words: str) -> str:
        """Return the command line, ready to paste."""
        return shell_words(*self.words(*words))

    def run(self, app: App, *words: str, stdin: bytes = b"") -> bytes:
        """Run kubectl; raise UnauthorizedError, UnreachableError and `run_program`'s errors, with all it printed."""
        try:
            return run_program(app, self.words(*words), stdin=stdin)
        except ProgramError as exc:
            raise self._failure(exc, words) from exc

    def patch(self, app: App, patch: Patch) -> None:
        """Patch an object; the body may have passwords, so it is in no command line and in no message."""
        self.run(app, *patch.words_for_stdin(), stdin=patch.text.encode())

    def find(self, app: App, what: str, *options: str) -> Manifest | None:
        """Read the object KIND/NAME as it is now; return None if there is none. Raise EosctlError for anything else."""
        said = self.run(app, "get", what, "--ignore-not-found", *options, "--output", "json")
        return _object(said, what) if said.strip() else None

    def get(self, app: App, what: str, *options: str) -> Manifest:
        """Read the object KIND/NAME as it is now; raise NotFoundError."""
        found = self.find(app, what, *options)
        if found is None:
            where = f"namespace {self.namespace}" if self.namespace else "the namespace of kubectl's context"
            raise NotFoundError(f"there is no {what} in {where}", hint="Check --workload, --namespace and the context.")
        return found

    def list_pods(self, app: App, selector: str) -> Sequence[Manifest]:
        """List the pods that a label selector finds."""
        said = self.run(app, "get", "pods", "--selector", selector, "--output", "json")
        return cast("Sequence[Manifest]", _object(said, "pods").get("items") or ())

    def last_lines(self, app: App, pod: str, container: str) -> Sequence[str]:
        """Return the last lines of a container's log, before its last restart if it has one; none if unreadable."""
        look = replace(app, deadline=Deadline.after(min(_LOG_S, app.deadline.remaining_s()), app.clock))
        for when in (["--previous"], []):
            with suppress(EosctlError):
                told = self.run(look, "logs", f"pod/{pod}", "--container", container, "--tail", str(_LINES), *when)
                return [
                    shown_line(line)[:_LINE] for line in told.decode("utf-8", "replace").splitlines() if line.strip()
                ]
        return ()

    def may(self, app: App, verb: str, what: str) -> bool:
        """Decide whether the API server would allow it."""
        try:
            return run_program(app, self.words("auth", "can-i", verb, what)).strip().startswith(b"yes")
        except ProgramError as exc:
            if _NO.search(exc.printed):
                return False
            raise self._failure(exc, ("auth", "can-i", verb, what)) from exc

    def where(self, app: App) -> str:
        """Describe the context and its server; in a pod, where there is no context, the pod's own cluster."""
        try:
            said = self.run(app, "config", "view", "--minify", "--output", "json")
        except EosctlError:
            return "the cluster that this pod is in"
        view = _object(said, "config view")
        clusters = [section(each, "cluster").get("server") for each in view.get("clusters") or ()]
        return f"context {view.get('current-context')} ({', '.join(str(each) for each in clusters)})"

    def _failure(self, exc: ProgramError, words: Sequence[str]) -> EosctlError:
        said = " / ".join(line.strip() for line in exc.said.splitlines() if line.strip()) or "it said nothing"
        message = f"{self.line(*words)}: {said}"
        if _FORBIDDEN.search(exc.said):
            return UnauthorizedError(message, hint=KUBECTL_RIGHTS.next)
        if _UNREACHABLE.search(exc.said):
            return UnreachableError(
                message, hint="Check --context and --kubeconfig; `kubectl cluster-info` shows more."
            )
        return EosctlError(message, hint="Run it by hand to see more.")


def _object(said: bytes, what: str) -> Manifest:
    try:
        found = json_of(said)
    except ValueError as exc:
        raise EosctlError(f"kubectl get {what} answered with something else than JSON") from exc
    if not isinstance(found, dict):
        raise EosctlError(f"kubectl get {what} answered with something else than an object")
    return found


def poll(app: App, doing: str, done: Callable[[App], bool], *, hint: str) -> None:
    """Poll until `done` or until the App's time is up; raise DeadlineError, and what `done` raises.

    If the API server does not answer, it is asked again.
    """
    looks = PatientLooks(app, app.deadline)
    for _ in app.deadline.rounds(_POLL_S):
        with looks as look:
            if done(look):
                return
    raise DeadlineError(f"timed out after {app.deadline.timeout_s:g} s while waiting for {doing}", hint=hint)


def section(manifest: Manifest, *path: str) -> Manifest:
    """Return a member that is an object; empty if it is left out."""
    found: object = manifest
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return cast("Manifest", found) if isinstance(found, Mapping) else {}
