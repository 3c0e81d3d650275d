"""The Pythons of this machine that eosctl is for."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

FOR = ("3.11", "3.12", "3.13", "3.14")
_VERSION = re.compile(r"Python (\d+\.\d+)\.")


def pythons() -> dict[str, str]:
    """Version -> interpreter: on the PATH or below pyenv's folder, whether or not pyenv has chosen it."""
    kept = sorted((Path.home() / ".pyenv" / "versions").glob("*/bin/python3"))
    found: dict[str, str] = {}
    for version in FOR:
        for path in (sys.executable, shutil.which(f"python{version}"), *map(str, kept)):
            if path is not None and _version(path) == version:
                found.setdefault(version, path)
    return found


def _version(path: str) -> str | None:
    """What it says that it is; None of a shim that leads to none."""
    said = subprocess.run([path, "--version"], capture_output=True, text=True)
    match = _VERSION.match(said.stdout)
    return match[1] if said.returncode == 0 and match else None
