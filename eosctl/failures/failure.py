"""An entry of the dictionary of failures, as a value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from eosctl.codes import Code
from eosctl.foreign import arguments, shell_word


class Family(StrEnum):
    """The software in whose words a failure is described."""

    CONNECT = "connect"
    PRODUCER = "producer"
    COORDINATOR = "coordinator"
    STREAMS = "streams"
    FLINK = "flink"
    READER = "reader"
    BROKER = "broker"


RESTART = "`eosctl connectors restart --failed {name}`"
"""The command that restarts a connector's FAILED parts."""


class Sign(Struct, frozen=True):
    """The signs of a failure in a text: all of `texts`, literals of Kafka's, in the exceptions of one trace.

    None of `without` may be there: the same words mean something else then. `pattern`, where given, has to be found in
    one of the exceptions, too. `means`, `causes` and `fix`, where given, are more specific than those of the failure.
    """

    texts: tuple[str, ...]
    without: tuple[str, ...] = ()
    means: str = ""
    fix: str = ""
    causes: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None


class VersionNote(Struct, frozen=True):
    """A difference in some versions: `versions` in words, as "before 2.7"."""

    versions: str
    words: str


class Failure(Struct, frozen=True, kw_only=True):
    """A known failure.

    `name` is its common name, `aliases` are others. `means` is a clause: what the task or client died of. `causes` are
    ordered by likelihood. In `fix` and `commands`, {name} stands for the connector, {c} for it with a check's options,
    {id} for the transactional id, {topic} for a topic. `said_by` is its source in Kafka: class and version. `explains`
    are the failures that are only its consequences when a text has both.

    `fencing`: a task died of it because the old ones were not fenced, and may run when they are.
    `of_worker`: the fault is on the worker or its machine, and another worker may be healthy.
    `is_wrapper`: it only reports where another failure was noticed.
    `of_transactions`: it is about transactions or fencing; else it may stop exactly-once tasks like any other.
    """

    code: Code
    family: Family
    name: str
    signs: tuple[Sign, ...]
    means: str
    causes: tuple[str, ...]
    fix: str
    said_by: tuple[str, ...]
    is_not: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    versions: tuple[VersionNote, ...] = ()
    aliases: tuple[str, ...] = ()
    explains: tuple[Code, ...] = ()
    fencing: bool = False
    of_worker: bool = False
    is_wrapper: bool = False
    of_transactions: bool = True

    @property
    def anchor(self) -> str:
        """Its page in docs/failures.md."""
        return f"docs/failures.md#{self.code}"


def sign(
    *texts: str,
    without: tuple[str, ...] = (),
    means: str = "",
    fix: str = "",
    causes: tuple[str, ...] = (),
    pattern: str = "",
) -> Sign:
    """Make a sign of these texts."""
    return Sign(texts, without, means, fix, causes, re.compile(pattern) if pattern else None)


def filled_in(text: str, names: Mapping[str, str]) -> str:
    """Fill in {name}, {c}, {id} and {topic} in `text`; without a value, by the word in capitals."""
    for key, otherwise in _PLACEHOLDERS.items():
        text = text.replace(f"{{{key}}}", names.get(key, "") or otherwise)
    return text


_PLACEHOLDERS = {"c": "NAME", "name": "NAME", "id": "ID", "topic": "TOPIC"}


def quoted(names: Mapping[str, str]) -> dict[str, str]:
    """Quote the names for a shell: {name} and {id} stand last in a command, the others behind an option."""
    quoting = {"name": arguments, "id": arguments}
    return {key: quoting.get(key, shell_word)(value) for key, value in names.items() if value}
