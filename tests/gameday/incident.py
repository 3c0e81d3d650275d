"""An incident of a game day: what is done to a cluster, what doctor must name, and which printed commands heal it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from eosctl.core.findings import ERROR
from tests.gameday.ground import Ground

Saboteur = Callable[[Ground, str], AbstractContextManager[None]]
"""Breaks something under a name that nothing else has, and at its end takes away what it has put there."""


@dataclass(frozen=True, slots=True)
class Named:
    """A finding; {} in `subject` stands for the saboteur's name, {worker} for the URL of the last worker.

    `follows` are codes of what must stand below it.
    """

    code: str
    subject: str
    severity: str = ERROR
    follows: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Incident:
    """`named` are all errors and warnings that doctor may have: the cause first, whose remedy heals.

    `healed_by` is how each printed command begins, in the order in which they are run; each is printed once for each
    time it stands there. `by_hand` is what has to be done before
    them, or instead, and no command can do.
    """

    title: str
    made: Saboteur
    named: tuple[Named, ...]
    healed_by: tuple[str, ...] = ()
    by_hand: Callable[[Ground], None] | None = None

    def __str__(self) -> str:
        return self.title


def play(incident: Incident, ground: Ground, name: str) -> None:
    """Doctor is quiet, names the incident, prints what heals it, and is quiet again."""
    worker = ground.urls[-1]
    wanted = [(each.code, each.subject.format(name, worker=worker), each.severity) for each in incident.named]
    with incident.made(ground, name):
        began_s = time.monotonic()
        rows = ground.wait_for(frozenset(wanted))
        named_s = time.monotonic()
        [cause] = [row for row in rows if (row["code"], row["subject"], row["severity"]) == wanted[0]]
        below = {each["code"] for each in cause["evidence"].get("follows", ())}
        assert below >= set(incident.named[0].follows), cause
        if incident.by_hand is not None:
            incident.by_hand(ground)
        for line in printed(cause["fix"], [each.replace("{}", name) for each in incident.healed_by]):
            ground.paste(line)
        ground.wait_until_quiet()
        healed_s = time.monotonic()
    print(f"{incident.title} | {wanted[0][0]} | named {named_s - began_s:.1f} s | healed {healed_s - named_s:.1f} s")
    ground.wait_until_quiet()


def printed(fix: str, starts: Sequence[str]) -> Iterator[str]:
    """The commands of a remedy that begin so, in this order and no other."""
    lines = iter([each for each in re.findall(r"`([^`]*)`", fix) or [fix] if each.startswith(("eosctl ", *starts))])
    for start in starts:
        yield next(each for each in lines if each.startswith(start))
