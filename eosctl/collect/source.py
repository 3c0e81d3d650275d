"""A source: one question to the cluster, how often it is asked and how long it may take."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from eosctl.app import App
from eosctl.collect.overview import Overview

Look = Callable[[App, Overview], object]
"""Looks once: the App has a deadline of its own, the overview is what other sources know. Returns one class of facts;
raises EosctlError. It may remember what it saw: no two looks of a source are ever under way together."""


class FactSource(Struct, frozen=True):
    """A source of facts: `name` labels its metrics; a look every `every` intervals may take `deadline_s`.

    One that is `last` begins after the first looks of the others, or an interval of theirs later, so that the looks
    that take most memory do not coincide. One that is `after` uses the facts of others from the overview: when each is
    looked at only once, its turn comes after theirs.
    """

    name: str
    look: Look
    every: int = 1
    deadline_s: float = 20.0
    last: bool = False
    after: bool = False
