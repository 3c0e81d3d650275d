"""The dictionary of failures, and the match of a trace's exceptions with it. Pure.

The deepest exception that an entry fits decides; those above it only noticed it.

The dictionary has every entry, in the order in which a text is compared with them. Connect's entries come before those
of producers, and those about ids before those about rights in general.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

from msgspec import Struct

from eosctl.core.wording import did_you_mean
from eosctl.failures.entries.brokers import BROKERS
from eosctl.failures.entries.clients import APPLICATIONS, CLIENTS
from eosctl.failures.entries.coordinators import COORDINATORS
from eosctl.failures.entries.fencing import FENCING
from eosctl.failures.entries.producers import PRODUCERS
from eosctl.failures.entries.requests import REQUESTS
from eosctl.failures.entries.sources import RECORDS, SOURCES
from eosctl.failures.entries.tasks import TASKS
from eosctl.failures.entries.workers import WORKERS
from eosctl.failures.failure import Failure, Family, Sign
from eosctl.failures.reading import Cause

FAILURES: tuple[Failure, ...] = (
    *FENCING, *WORKERS, *REQUESTS, *RECORDS, *TASKS, *SOURCES, *APPLICATIONS, *COORDINATORS, *PRODUCERS, *CLIENTS,
    *BROKERS,
)  # fmt: skip
BY_CODE: Mapping[str, Failure] = {each.code: each for each in FAILURES}
"""Code -> entry; what doctor and `connectors trace` name, and the anchor in docs/failures.md."""


_EVERYBODYS = (Family.COORDINATOR, Family.PRODUCER, Family.READER, Family.BROKER)
_OF_A_CLASS = re.compile(r"\w*(?:Exception|Error)")


class Match(Struct, frozen=True):
    """An entry that fits an exception of a trace: the one at `depth`, 0 is the outermost."""

    failure: Failure
    sign: Sign
    depth: int

    @property
    def means(self) -> str:
        """The cause of the failure, as a clause."""
        return self.sign.means or self.failure.means

    @property
    def causes(self) -> tuple[str, ...]:
        """The possible causes, the most likely first."""
        return self.sign.causes or self.failure.causes

    @property
    def fix(self) -> str:
        """The remedy, with {name} and {c}."""
        return self.sign.fix or self.failure.fix


def matches_of(causes: Sequence[Cause], family: Family | None = None) -> list[Match]:
    """Find the entries that match the exceptions of one trace, each once: the cause first, then where it was noticed.

    `family` is the origin of the trace, where known: only its own entries are recognised by the name of a class alone.
    """
    found = [match for depth in reversed(range(len(causes))) for match in _fitting(causes, depth, family)]
    found.sort(key=lambda match: match.failure.is_wrapper)
    first_of = {match.failure.code: match for match in reversed(found)}
    return [match for match in found if first_of[match.failure.code] is match]


def known_failure(causes: Sequence[Cause], family: Family | None = None) -> Match | None:
    """Return the match for the cause of a trace, if the table has it."""
    return next(iter(matches_of(causes, family)), None)


def _fitting(causes: Sequence[Cause], depth: int, family: Family | None) -> Iterator[Match]:
    """Yield the first entry that fits this exception; all of its words are somewhere in the trace."""
    cause = causes[depth]
    for failure, sign in _in_order(family):
        if any(map(cause.has, sign.texts)) and _stands(sign, causes):
            yield Match(failure, sign, depth)
            return


def _stands(sign: Sign, causes: Sequence[Cause]) -> bool:
    return (
        all(any(each.has(text) for each in causes) for text in sign.texts)
        and not any(each.has(text) for each in causes for text in sign.without)
        and (sign.pattern is None or any(map(sign.pattern.search, (each.text for each in causes))))
    )


@cache
def _in_order(family: Family | None) -> tuple[tuple[Failure, Sign], ...]:
    """Return the signs in order of precedence: the family's own, the common ones, then those of other families."""
    own = [each for each in FAILURES if each.family is family]
    common = [each for each in FAILURES if each.family in _EVERYBODYS and each not in own]
    others = [each for each in FAILURES if each not in own and each not in common]
    signs = [(each, sign) for each in (*own, *common) for sign in each.signs]
    strange = [
        (each, sign) for each in others for sign in each.signs if not all(map(_OF_A_CLASS.fullmatch, sign.texts))
    ]
    return (*signs, *strange)


def root_causes(codes: Iterable[str]) -> Mapping[str, frozenset[str]]:
    """Map each code to those of the others that explain it, among the failures of a whole log."""
    present = set(codes)
    return {
        code: frozenset(
            each.code for each in FAILURES if each.code in present and code in each.explains and each.code != code
        )
        for code in present
    }


def entries_named(words: str) -> list[Failure]:
    """Find the entries of that name: of an exception, with or without package, or in words of Kafka's.

    An entry with that name comes first, then those that have it as an alias.
    """
    wanted = _plain(words)
    if not wanted:
        return []
    exact = [each for each in FAILURES if any(_plain(name) == wanted for name in names_of(each))]
    exact.sort(key=lambda each: _plain(each.name) != wanted)
    return exact or [
        each for each in FAILURES if len(wanted) > 5 and any(wanted in _plain(name) for name in names_of(each))
    ]


def names_of(failure: Failure) -> list[str]:
    """Return the names of an entry, including the words by which it is recognised."""
    return [failure.name, *failure.aliases, *(text for sign in failure.signs for text in sign.texts)]


def nearest_name(words: str, *, otherwise: str) -> str:
    """Return a hint with names of similar spelling."""
    known = [each.name for each in FAILURES] + [name for each in FAILURES for name in each.aliases]
    return did_you_mean(words, known, most=5, otherwise=otherwise)


def _plain(name: str) -> str:
    """Strip package, case, punctuation and the word exception from a name."""
    last = re.sub(r"^(?:[a-z][\w$]*\.)+(?=[A-Z])", "", name.strip())
    return re.sub(r"[\W_]+|exception", "", last.casefold())
