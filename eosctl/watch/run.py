"""The operation of `eosctl watch`: looks repeatedly, shows the changes, and ends on request. Writes nothing to Kafka.

It aborts nothing by itself: that is a decision for people.

The collector's facts become what a watch shows: findings and their age, optionally of one connector. Each source is
looked at by itself; a common cause of failure is one line.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.checks import codes
from eosctl.checks.ignored import IgnoredFinding, split_ignored
from eosctl.collect.collector import Collector
from eosctl.collect.facts import DoctorFacts, GroupFacts, HangingFacts, unseen_parts
from eosctl.collect.looks import ConnectGroupLook, DoctorLook, look_at_kafka, look_for_hanging
from eosctl.collect.overview import Collected, FactSource, Overview
from eosctl.core.findings import ERROR, SEVERITIES, Finding
from eosctl.core.wording import did_you_mean
from eosctl.deadline import Deadline, ignore_events
from eosctl.errors import DeadlineError, EosctlError, ExitCode, InterruptedByUserError, NotFoundError
from eosctl.output.cells import duration
from eosctl.report import Problem, Report
from eosctl.watch.rows import WATCH, WatchSummary, watch_row
from eosctl.watch.rules import LineChange, SourceLook, WatchState, changes, next_state, not_collected

KAFKA, HANGING, GROUP, DOCTOR = "kafka", "hanging", "group", "doctor"


def watched_sources(ignore: Sequence[IgnoredFinding]) -> tuple[FactSource, ...]:
    """Return the exporter's sources, with hanging transactions apart, and with doctor at each interval."""
    return (
        FactSource(KAFKA, look_at_kafka),
        FactSource(HANGING, look_for_hanging, deadline_s=60.0),
        FactSource(GROUP, ConnectGroupLook(), every=2, deadline_s=40.0),
        FactSource(DOCTOR, DoctorLook(tuple(ignore)), deadline_s=120.0),
    )


def looks_of(
    overview: Overview, *, servers: Iterable[str], connector: str | None, ignore: Sequence[IgnoredFinding]
) -> list[SourceLook]:
    """Return each source's findings, and one per failed source; while Kafka does not answer, only that failure."""
    others = _other_connectors(overview, connector)
    is_down = overview.error(KAFKA) is not None
    looks = [_look(each, overview.taken_ms, servers, is_down=is_down) for each in overview.collected.values()]
    return [replace(look, findings=_wanted(look.findings, connector, others, ignore)) for look in looks]


def group_sentence(overview: Overview) -> str:
    """Return doctor's sentence about the group; an empty one before doctor has run."""
    facts = overview.facts(DoctorFacts)
    return facts.sentence if facts is not None else ""


def known_connectors(overview: Overview) -> Collection[str] | None:
    """Return the source connectors; None if unknown."""
    group = overview.facts(GroupFacts)
    return None if group is None or group.connectors is None else [each.name for each in group.connectors]


def _look(source: Collected, now_ms: int, servers: Iterable[str], *, is_down: bool) -> SourceLook:
    error = source.error_at(now_ms)
    findings = list(_findings(source.facts))
    if error is not None and source.source == KAFKA:
        findings.append(_unreachable(error, source.message_at(now_ms), servers))
    elif error is not None and not is_down:
        findings.append(not_collected(source.source, error, source.message_at(now_ms)))
    return SourceLook(
        source.source,
        None if source.facts_ms is None else source.facts_ms / 1000,
        findings,
        error,
        source.message_at(now_ms),
        source.is_stale(now_ms),
        frozenset({codes.HANGING_TRANSACTION}) if source.source == HANGING else frozenset(),
        _unseen(source.facts),
    )


def _unseen(facts: object) -> int:
    """Count the unknown parts; doctor's uncertain findings are lines, and may be about another connector."""
    return len(facts.doubts()) if isinstance(facts, DoctorFacts) else unseen_parts(facts) or 0


def _findings(facts: object) -> Iterable[Finding]:
    return facts.findings if isinstance(facts, DoctorFacts | HangingFacts) else ()


def _unreachable(error: str, message: str, servers: Iterable[str]) -> Finding:
    return Finding(
        codes.KAFKA_UNREACHABLE, ERROR, ",".join(servers), f"nothing can be collected without Kafka: {message}",
        codes.KAFKA_UNREACHABLE.next, {"error": error},
    )  # fmt: skip


def _other_connectors(overview: Overview, connector: str | None) -> Collection[str]:
    known = known_connectors(overview)
    return () if connector is None or known is None else [name for name in known if name != connector]


def _wanted(
    findings: Sequence[Finding], connector: str | None, others: Collection[str], ignore: Sequence[IgnoredFinding]
) -> Sequence[Finding]:
    counting, _accepted = split_ignored(findings, ignore)
    if connector is None:
        return counting
    return [each for each in counting if _names(each, [connector]) or not _names(each, others)]


def _names(finding: Finding, connectors: Collection[str]) -> bool:
    """Decide whether the finding is about one of these connectors, by its subject, its evidence or its message."""
    if not connectors:
        return False
    words = {finding.subject, finding.subject.rpartition("/")[0], *re.split(r"[\s,;:()]+", finding.message)}
    words |= {part.rpartition("/")[0] for part in words}
    return not words.isdisjoint(connectors) or not _evidence_names(finding.evidence).isdisjoint(connectors)


def _evidence_names(evidence: Mapping[str, object]) -> set[str]:
    found = [evidence.get("connector"), *_listed(evidence.get("connectors")), *_listed(evidence.get("subjects"))]
    names = {str(each) for each in found if each is not None}
    return names | {name.rpartition("/")[0] for name in names}


def _listed(value: object) -> Iterable[object]:
    return value if isinstance(value, list | tuple) else ()


DEFAULT_INTERVAL_S = 15.0
_TICK_S = 0.5


class WatchRequest(Struct, frozen=True):
    """The options; `until`: end once that state has lasted for `for_s` uninterrupted; give up after `timeout_s`.

    `connector`: only what is about this one, or about none. `strict`: warnings count as errors do.
    """

    interval_s: float = DEFAULT_INTERVAL_S
    connector: str | None = None
    until: Literal["calm", "finding"] | None = None
    for_s: float = 0.0
    timeout_s: float | None = None
    strict: bool = False
    ignore: Sequence[IgnoredFinding] = ()


class Display(Protocol):
    """The display of a watch: a screen, or a stream with a line per change."""

    def __enter__(self) -> object:
        """Set up the display."""

    def __exit__(self, *exc: object) -> None:
        """Restore what was there before."""

    def show(
        self, watch: WatchState, changed: Sequence[LineChange], *, heading: str, waiting: str, now_ms: int
    ) -> None:
        """Show the current lines, and what changed since the last time."""

    def wait(self, seconds: float) -> bool:
        """Wait for the given time, or until there is something to do; return True to end the watch."""


def run_watch(app: App, request: WatchRequest, display: Display) -> Report:
    """Watch until the user ends it, `until` holds, or the timeout; report the current lines as rows.

    Exit code: 0, or 3 for a finding that was waited for; 4 at the timeout, 130 if a wait is ended before. Raises
    UsageError without a target, NotFoundError for a group or a connector that does not exist.
    """
    app.target.require_client()
    app.target.require_group_id()
    app = replace(app, on_event=ignore_events)  # every failure is a line
    collector = Collector(app, watched_sources(request.ignore), interval_s=request.interval_s)
    collector.start()
    try:
        return _Watch(app, request, collector.overview).until_the_end(display)
    finally:
        collector.stop()


class _Watch:
    """One watch, from its first look on."""

    def __init__(self, app: App, request: WatchRequest, overview: Callable[[], Overview]) -> None:
        self._app, self._request, self._overview = app, request, overview
        self._watched, self._was_there = WatchState(), False
        timeout_s = request.timeout_s if request.until else None
        self._deadline = None if timeout_s is None else Deadline.after(timeout_s, app.clock)

    def until_the_end(self, display: Display) -> Report:
        """Run the watch; Ctrl-C and SIGTERM restore the terminal, and still report the lines."""
        try:
            with display:
                while True:
                    self._look(display)
                    if self._holds():
                        return self._report(ExitCode.FINDINGS if self._request.until == "finding" else ExitCode.OK)
                    if self._deadline is not None and self._deadline.expired():
                        return self._too_late(self._deadline)
                    if display.wait(self._rest_s()):
                        return self._ended()
        except KeyboardInterrupt:
            return self._failed(InterruptedByUserError("interrupted"))

    def _look(self, display: Display) -> None:
        overview = self._overview()
        self._require_there(overview)
        request, now_s = self._request, overview.taken_ms / 1000
        client = self._app.target.client
        looks = looks_of(
            overview,
            servers=client.bootstrap_servers if client else (),
            connector=request.connector,
            ignore=request.ignore,
        )
        before, self._watched = self._watched, next_state(self._watched, looks, now_s, strict=request.strict)
        display.show(
            self._watched,
            changes(before, self._watched),
            heading=self._heading(overview),
            waiting=self._waiting(now_s),
            now_ms=overview.taken_ms,
        )

    def _require_there(self, overview: Overview) -> None:
        """Raise NotFoundError for a name that is wrong from the start; one that disappears later is a line."""
        doctor = overview.collected[DOCTOR]
        if doctor.facts is None and doctor.error == NotFoundError.code:
            raise NotFoundError(doctor.message, hint="Names are case-sensitive: check -g and -b.")
        wanted, known = self._request.connector, known_connectors(overview)
        if wanted is None or known is None or self._was_there:
            return
        if wanted not in known:
            near = did_you_mean(wanted, known, most=3, otherwise="See all of them: eosctl workers list")
            raise NotFoundError(f"there is no source connector {wanted!r}", hint=near)
        self._was_there = True

    def _heading(self, overview: Overview) -> str:
        group = f"group {self._app.target.group_id}"
        about = f", {self._request.connector}" if self._request.connector else ""
        sentence = group_sentence(overview)
        return f"{group}{about}: {sentence}" if sentence else f"{group}{about}"

    def _waiting(self, now_s: float) -> str:
        until = self._request.until
        if until is None:
            return ""
        if self._watched.state != until:
            return f"waiting until {until}"
        return f"{until} for {_length(now_s - self._watched.state_since_s)} of {_length(self._request.for_s)}"

    def _holds(self) -> bool:
        if self._request.until is None or self._watched.state != self._request.until:
            return False
        return self._now_s() - self._watched.state_since_s >= self._request.for_s

    def _rest_s(self) -> float:
        return _TICK_S if self._deadline is None else min(_TICK_S, self._deadline.remaining_s())

    def _now_s(self) -> float:
        return self._app.clock.now_ms() / 1000

    def _too_late(self, deadline: Deadline) -> Report:
        state, until = self._watched.state, self._request.until
        return self._failed(
            DeadlineError(
                f"not {until} for {_length(self._request.for_s)} within {deadline.timeout_s:g} s: it is {state}",
                hint="The rows say what stands. Give it more time with --timeout.",
            )
        )

    def _ended(self) -> Report:
        """Report the end by the user: success for a plain watch, a failure for a wait."""
        if self._request.until is None:
            return self._report(ExitCode.OK)
        return self._failed(InterruptedByUserError(f"ended before it was {self._request.until}"))

    def _failed(self, error: EosctlError) -> Report:
        return replace(self._report(error.exit_code), problems=[Problem.of(error)])

    def _report(self, exit_code: ExitCode) -> Report:
        now_ms, now = self._app.clock.now_ms(), self._watched
        counts = Counter(line.finding.severity for line in now.lines)
        return Report(
            kind=WATCH,
            rows=[watch_row("stands", line, now_s=now_ms / 1000, now_ms=now_ms) for line in now.lines],
            summary=WatchSummary(
                state=now.state,
                for_ms=max(0, int(now_ms - now.state_since_s * 1000)) if now.looks else 0,
                counts={severity: counts[severity] for severity in SEVERITIES},
                sources=len(now.looks),
                unknown=sum(not look.is_known for look in now.looks),
            ),
            target={"kafka_cluster_id": None, "group_id": self._app.target.group_id},
            exit_code=exit_code,
        )


def _length(seconds: float) -> str:
    return duration(int(seconds * 1000))
