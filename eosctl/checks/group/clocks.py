"""The clocks of the workers, by the Date of their REST answers, beside this machine's and the coordinators'.

A clock that is far ahead has its worker's records refused by brokers, status records included; one that is off makes
every age wrong that is computed by it. Ours may be the wrong one: a worker is named only if others agree against it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from msgspec import Struct

from eosctl.app import App
from eosctl.checks import codes
from eosctl.core.findings import ERROR, WARNING, Finding
from eosctl.errors import EosctlError, InterruptedByUserError
from eosctl.group.observed import GroupObservation
from eosctl.group.workers import PARALLEL_WORKERS
from eosctl.machine.side_by_side import side_by_side

APART_MS = 60_000
REFUSED_MS = 3_600_000
"""Brokers from 4.0 on refuse, by default, records dated so far ahead (log.message.timestamp.after.max.ms)."""
_LONGEST_ANSWER_MS = 10_000
_HERE = "this machine"


class _Clock(Struct, frozen=True):
    """A worker's clock: how far it is ahead of ours, and its host, all of whose workers have that one clock."""

    worker: str
    host: str
    ahead_ms: int


def clock_findings(app: App, group: GroupObservation, coordinators_ms: int | None) -> list[Finding]:
    """Return a finding for each clock that is off by more than a minute.

    Asks each worker that answers for itself once more. `coordinators_ms` is a time that the coordinators' clocks have
    passed, as far as one is known.
    """
    asked = [each for each in group.members if each.failure is None and each.has_rest and not each.doubt and each.url]
    answers = side_by_side(lambda each: _ahead_ms(app, str(each.url)), asked, most=PARALLEL_WORKERS)
    clocks = [
        _Clock(each.name, urlsplit(str(each.url)).hostname or "", ahead_ms)
        for each, ahead_ms in zip(asked, answers, strict=True)
        if ahead_ms is not None
    ]
    brokers_ms = None if coordinators_ms is None else coordinators_ms - app.clock.now_ms()
    return list(_judge({each.worker: each for each in clocks}, brokers_ms))


def _ahead_ms(app: App, url: str) -> int | None:
    """Return how far the worker's clock is ahead of ours, to about a second; None where it is not known."""
    before_ms = app.clock.now_ms()
    try:
        date_ms = app.worker(url).date_ms()
    except InterruptedByUserError:
        raise
    except EosctlError:
        return None  # that it does not answer others say
    after_ms = app.clock.now_ms()
    if date_ms is None or not 0 <= after_ms - before_ms <= _LONGEST_ANSWER_MS:
        return None
    return date_ms + 500 - (before_ms + after_ms) // 2


def _judge(clocks: Mapping[str, _Clock], brokers_ms: int | None) -> Iterable[Finding]:
    """Yield a finding for each clock that differs from ours, or one for ours where all others differ from it alike.

    `brokers_ms` is the least by which the coordinators' clocks are ahead of ours.
    """
    off = [each for each in clocks.values() if abs(each.ahead_ms) > APART_MS]
    if not off:
        return
    ours = 1 + len({each.host for each in clocks.values() if each not in off})
    is_behind_brokers = brokers_ms is not None and brokers_ms > APART_MS
    if len(off) == len(clocks) and (is_behind_brokers or any(_agreeing(each, clocks) > 1 for each in off)):
        yield _ours(off, brokers_ms if is_behind_brokers else None)
        return
    for each in off:
        proven = brokers_ms is not None and each.ahead_ms < brokers_ms - APART_MS
        yield _theirs(each, is_certain=proven or ours > _agreeing(each, clocks))


def _agreeing(clock: _Clock, clocks: Mapping[str, _Clock]) -> int:
    """Return how many hosts have the same time as this one, itself among them."""
    return len({each.host for each in clocks.values() if abs(each.ahead_ms - clock.ahead_ms) <= APART_MS})


def _ours(off: list[_Clock], brokers_ms: int | None) -> Finding:
    least_ms = min((each.ahead_ms for each in off), key=abs)
    others = "the workers and of the brokers" if brokers_ms is not None else "all workers"
    return Finding(
        codes.CLOCK_DIFFERS, WARNING, _HERE,
        f"the clock of this machine is {_apart(-least_ms)} those of {others}: every age that eosctl prints is wrong by "
        "as much",
        "Set this machine's clock (NTP), and run again.",
        {"ahead_ms": -least_ms, "workers": {each.worker: each.ahead_ms for each in off}},
    )  # fmt: skip


def _theirs(clock: _Clock, *, is_certain: bool) -> Finding:
    refused = clock.ahead_ms >= REFUSED_MS
    whose = "the clocks of others" if is_certain else "this machine's, and no third one says which is right"
    means = (
        ": brokers from 4.0 on refuse its records, those of its statuses included (InvalidTimestampException)"
        if refused
        else ""
    )
    return Finding(
        codes.CLOCK_DIFFERS, ERROR if refused and is_certain else WARNING, clock.worker,
        f"the clock of {clock.worker} is {_apart(clock.ahead_ms)} {whose}{means}",
        f"Set the clock of its host (NTP){'' if is_certain else ', or that of this machine'}; then restart the worker."
        if refused
        else f"Set the clock of its host (NTP){'' if is_certain else ', or that of this machine'}.",
        {"ahead_ms": clock.ahead_ms, "worker": clock.worker, "blamed": is_certain},
    )  # fmt: skip


def _apart(ahead_ms: int) -> str:
    seconds = abs(ahead_ms) // 1000
    long = f"{seconds // 60:,} m" if seconds >= 120 else f"{seconds} s"
    return f"{long} {'ahead of' if ahead_ms > 0 else 'behind'}"
