"""A connector that there is not: said with the names that there are."""

from __future__ import annotations

from collections.abc import Iterable

from eosctl.core.wording import alike_first
from eosctl.errors import NotFoundError

_MOST_NAMED = 10


def unknown_connector(message: str, name: str, known: Iterable[str]) -> NotFoundError:
    """The error of a command that was given `name`, where the workers have the connectors `known`."""
    alike = alike_first(name, known)
    if not alike:
        return NotFoundError(message, hint="The group has no connector.")
    more = len(alike) - _MOST_NAMED
    rest = f" and {more:,} more" if more > 0 else ""
    names = ", ".join(alike[:_MOST_NAMED])
    return NotFoundError(message, hint=f"Names are case-sensitive. Connectors of the group: {names}{rest}.")
