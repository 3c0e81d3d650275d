"""Python packages that only some work needs."""

from __future__ import annotations

import re
from importlib import metadata


def install_hint(extra: str) -> str:
    """Return the command that adds what the extra `extra` of pyproject.toml names, such as `spark`.

    It names the packages themselves: no package index has eosctl, and whoever took that name there could run code.
    """
    try:
        requirements = metadata.requires("eosctl") or []
    except metadata.PackageNotFoundError:
        requirements = []
    wanted = [text.partition(";")[0].strip() for text in requirements if re.search(f"extra == ['\"]{extra}['\"]", text)]
    words = " ".join(f"'{name}'" for name in wanted)
    return f"pip install {words}" if words else f"In a clone of eosctl: pip install '.[{extra}]'"
