"""The environment of the programs that eosctl starts, and the user's own commands that print a secret.

The programs are kubectl, ssh, systemctl, JVMs, pip, and the user's own. Commands that print a secret are run by the
shell, as git's helpers are, and silently when they fail.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping

from eosctl.errors import InputFileError

_OURS = "EOSCTL_"


def child_environ(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment without eosctl's own passwords and tokens, and its URLs that carry some.

    All else stays: kubectl's plugins, ssh and commands that print a secret log in by variables that only they know.
    """
    found = os.environ if environ is None else environ
    return {name: value for name, value in found.items() if not _is_secret(name, value)}


def _is_secret(name: str, value: str) -> bool:
    if not name.startswith(_OURS):
        return False
    from eosctl.core.clients.hidden_secrets import sounds_secret

    return sounds_secret(name) or "@" in value


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
