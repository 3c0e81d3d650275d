"""The characters and the expiry of bearer tokens. Pure."""

from __future__ import annotations

import base64
import json

from eosctl.errors import InputFileError

_LATEST_S = 253_402_300_799.0  # the end of the year 9999: a later end is ignored


def is_token(text: str) -> bool:
    """Return whether a text can be a bearer token.

    It becomes a part of a line of a protocol, which a line break in it would end.
    """
    return bool(text) and all("!" <= each <= "~" for each in text)


def checked_token(text: str, where: str, *, hint: str = "It must be one token, and nothing else.") -> str:
    """Return the token without blanks around it; raises InputFileError, which does not show it."""
    token = text.strip()
    if not is_token(token):
        reason = "it is empty" if not token else "there is a blank, a line break, or what is not ASCII in it"
        raise InputFileError(f"{where}: that is no token: {reason}", hint=hint)
    return token


def token_end_s(token: str) -> float | None:
    """Return when a JWT ends by its `exp`, in seconds since the epoch; None for another token, or one without."""
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return seconds_of(claims["exp"])
    except (IndexError, KeyError, TypeError, ValueError, RecursionError):
        return None


def seconds_of(number: object) -> float | None:
    """Return a number of JSON as seconds; None for any other value, and for a number that is not a valid time."""
    if isinstance(number, bool) or not isinstance(number, int | float) or not -_LATEST_S < number < _LATEST_S:
        return None
    return float(number)
