"""The connectors that a command is about."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable

from msgspec import Struct

from eosctl.errors import NotFoundError, UsageError


class Selection(Struct, frozen=True):
    """The connectors that a command is about: names, all, or a pattern (`re:` or a glob)."""

    connectors: tuple[str, ...] = ()
    all_connectors: bool = False
    pattern: str | None = None

    def check(self) -> None:
        """Raise UsageError unless exactly one way of choosing connectors is given."""
        if sum([bool(self.connectors), self.all_connectors, self.pattern is not None]) != 1:
            raise UsageError("which connectors?", hint="Give one of --connector (repeatable), --match, or --all.")

    def choose(self, found: Iterable[str]) -> list[str]:
        """Return the selected connectors among `found`, sorted.

        Raises NotFoundError if a name or the pattern matches none.
        """
        names = sorted(found)
        if self.all_connectors and not names:
            raise NotFoundError(
                "the source has no offsets of any connector", hint="Check --from; `eosctl offsets list` shows them."
            )
        if self.all_connectors:
            return names
        missing = sorted(set(self.connectors) - set(names))
        if missing:
            raise NotFoundError(
                f"no offsets of connector {', '.join(missing)} in the source",
                hint="`eosctl offsets list` shows the connectors that have offsets.",
            )
        matches = self._matcher()
        chosen = [name for name in names if name in self.connectors or matches(name)]
        if not chosen:
            raise NotFoundError(f"no connector in the source matches {self.pattern!r}")
        return chosen

    def _matcher(self) -> Callable[[str], bool]:
        if self.pattern is None:
            return lambda _name: False
        if not self.pattern.startswith("re:"):
            glob = self.pattern
            return lambda name: fnmatch.fnmatchcase(name, glob)
        try:
            expression = re.compile(self.pattern[3:])
        except re.error as exc:
            raise UsageError(f"{self.pattern!r} is not a regular expression: {exc}") from exc
        return lambda name: expression.fullmatch(name) is not None
