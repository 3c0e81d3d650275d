"""Runs the programs that drivers need (systemctl, ssh, kubectl, the user's own): no shell, and a deadline."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from eosctl.app import App
from eosctl.errors import DeadlineError, EosctlError, NotFoundError
from eosctl.foreign import shell_words
from eosctl.machine.children import child_environ

_TOLD = 3  # lines of a failed program's last words


class ProgramError(EosctlError):
    """A program ended with another status than 0; `said` is all its output about that, `printed` its stdout."""

    def __init__(self, message: str, *, said: str, printed: str = "", hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.said, self.printed = said, printed


def run_program(app: App, words: Sequence[str], *, stdin: bytes = b"") -> bytes:
    """Run a program and return what it wrote to stdout.

    Raises NotFoundError if there is no such program, DeadlineError, ProgramError with its last output if its exit
    status is not 0, and EosctlError if it can't be run.
    """
    shown = shell_words(*words)
    try:
        done = subprocess.run(
            list(words),
            input=stdin,
            capture_output=True,
            timeout=max(1.0, app.deadline.remaining_s()),
            env=child_environ(),
        )
    except FileNotFoundError as exc:
        raise NotFoundError(f"there is no program {words[0]}", hint="Install it, or put it on PATH.") from exc
    except OSError as exc:
        raise EosctlError(f"cannot run {shown}: {exc.strerror or exc}") from exc
    except subprocess.TimeoutExpired as exc:
        raise DeadlineError(f"{shown} did not end in time", hint="Give it more time with --settle-timeout.") from exc
    if done.returncode:
        text = (done.stderr or done.stdout).decode("utf-8", "replace").strip()
        last = " / ".join(text.splitlines()[-_TOLD:]) or "it said nothing"
        message = f"{shown} ended with status {done.returncode}: {last}"
        printed = done.stdout.decode("utf-8", "replace")
        raise ProgramError(message, said=text, printed=printed, hint="Run it by hand to see more.")
    return done.stdout
