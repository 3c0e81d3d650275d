"""The environment of the programs that eosctl starts: kubectl, ssh, systemctl, JVMs, pip, and the user's own."""

from __future__ import annotations

import os
from collections.abc import Mapping

from eosctl.core.clients.harmless_settings import sounds_secret

_OURS = "EOSCTL_"


def child_environ(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment without eosctl's own passwords and tokens, and its URLs that carry some.

    All else stays: kubectl's plugins, ssh and commands that print a secret log in by variables that only they know.
    """
    found = os.environ if environ is None else environ
    return {name: value for name, value in found.items() if not _is_secret(name, value)}


def _is_secret(name: str, value: str) -> bool:
    return name.startswith(_OURS) and (sounds_secret(name) or "@" in value)
