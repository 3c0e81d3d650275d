"""Hides the logins in the URLs of a text. Pure.

Apart from `hidden_secrets`: every write does this to its arguments, and few have a setting, for which alone the many
patterns of settings need to be compiled.
"""

from __future__ import annotations

import re

from eosctl.core.wording import encodable

HIDDEN = "***"
_URL = re.compile(r"(?<![\w+.-])[a-z][\w+.-]*://[^\s\"'<>]+", re.I)
_LOGIN = re.compile(
    r"(?<![^\s,;'\"=])[^\s/@:,;'\"={}]+:[^\s@/'\"{}]{1,200}@(?=[\w.\[-])"
)  # of an address without scheme


def without_logins(text: str) -> str:
    """Return a text without the users, passwords and queries of its URLs; their paths stay."""
    return encodable(_LOGIN.sub(f"{HIDDEN}@", _URL.sub(lambda match: _without_login(match[0]), text)))


def _without_login(url: str) -> str:
    scheme, _colon, rest = url.partition("://")
    login, at, place = rest.rpartition("@")  # a password may have any character
    place, mark, _query = place.partition("?")
    return f"{scheme}://{HIDDEN if login else ''}{at}{place}{'?…' if mark else ''}"
