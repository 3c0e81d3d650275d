"""How this eosctl is installed: the packages that only some commands need, and how it starts itself."""

from __future__ import annotations

import re
import sys
from importlib import metadata
from zipimport import zipimporter


def install_hint(extra: str) -> str:
    """Return the command that installs the packages of the extra `extra` of pyproject.toml, such as `spark`.

    It names the packages themselves: no package index has eosctl, and anyone who took that name there could run code.
    Into the one file for machines without a network pip installs nothing.
    """
    if _pyz() is not None:
        return f"Use an eosctl that is installed from its wheel: the .pyz has no packages of the extra {extra!r}"
    try:
        requirements = metadata.requires("eosctl") or []
    except metadata.PackageNotFoundError:
        requirements = []
    wanted = [text.partition(";")[0].strip() for text in requirements if re.search(f"extra == ['\"]{extra}['\"]", text)]
    words = " ".join(f"'{name}'" for name in wanted)
    return f"pip install {words}" if words else f"In a clone of eosctl: pip install '.[{extra}]'"


def own_command() -> list[str]:
    """Return the words that start this eosctl: of the one file if it runs from that, as no other Python finds it."""
    return [sys.executable, *([pyz] if (pyz := _pyz()) else ["-m", "eosctl"])]


def _pyz() -> str | None:
    """Return the path of the one file if this program runs from it."""
    loader = getattr(sys.modules["__main__"], "__loader__", None)
    return str(loader.archive) if isinstance(loader, zipimporter) else None
