"""Runs the user's own commands that print a secret: by the shell, as git's helpers are, and silently when they fail."""

from __future__ import annotations

import subprocess

from eosctl.errors import InputFileError
from eosctl.machine.children import child_environ

SECRET_COMMAND_TIMEOUT_S = 30.0


def output_of(command: str, where: str, *, timeout_s: float = SECRET_COMMAND_TIMEOUT_S) -> str:
    """Return the output of `command` without its last line break.

    Raises InputFileError, which names the setting (`where`) that contains the command.
    """
    try:
        run = subprocess.run(  # noqa: S602 - the user's own file names the command
            command,
            shell=True,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=True,
            env=child_environ(),
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        # not `from exc`: the exception carries what the command printed
        raise InputFileError(f"{where}: the command failed", hint=f"Run it by hand: {command}") from None
    return run.stdout.rstrip("\r\n")
