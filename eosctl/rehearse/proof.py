"""The audits of a rehearsal's faults: of transactions since all workers are enabled, of values over the whole run.

A row is never better than what its audit could prove alone; what an earlier row has is not held against it once more.

The audit is `eosctl audit` itself, with its result in the shape of a fault's row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.audit import codes
from eosctl.audit.audit import audit
from eosctl.audit.codes import DUPLICATE
from eosctl.audit.rows import AuditData, AuditRow
from eosctl.audit.scope import BEGINNING, AuditRequest
from eosctl.codes import Code
from eosctl.core.records import Place
from eosctl.core.wording import counted, rfc3339
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError, ExitCode, InterruptedByUserError
from eosctl.offsets.codes import OFFSETS_WENT_BACK
from eosctl.rehearse.ground import Ground
from eosctl.rehearse.log import (
    A_RUN,
    Duplicates,
    Phase,
    SourceOffsets,
    comes_in_a_run,
    duplicates,
    held_against,
    missing_numbers,
    not_of_values,
    read_sequences,
    read_source_offsets,
)
from eosctl.rehearse.plan import DUPLICATES, RehearsalPlan
from eosctl.rehearse.rows import AuditedWindow, FaultVerdict, FoundPart


class FaultAuditRequest(Struct, frozen=True):
    """A request for an audit: a connector in a window, with the unique and the counting field, if given.

    The window begins at `begin`, the offset of each partition; where that is empty, at its time. `offsets_topics` are
    those in which the connector had its offsets for a while. `is_present`: the window of the present phase, of which
    is asked what goes on.
    """

    connector: str
    window: AuditedWindow
    unique: str | None
    sequence: str | None
    offsets_topics: tuple[str, ...] = ()
    begin: Mapping[Place, int] = {}
    is_present: bool = True


class FaultAudit(Struct, frozen=True):
    """The verdict of an audit, its reason, and its findings.

    `lacks` is everything that could not be proven, which findings would hide; `unread` is the part of it that could not
    be read. `delivered` is the number of records committed in the window; `offsets` are the source offsets committed
    until then. None means unknown. `progress` is the number of commits of each source partition, and of records of each
    sequence.
    """

    verdict: FaultVerdict
    why: str
    findings: tuple[FoundPart, ...] = ()
    window: AuditedWindow | None = None
    lacks: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    delivered: int | None = None
    offsets: SourceOffsets | None = None
    progress: Mapping[str, int] = {}


DELIVERY_S = 30.0
_AGAIN_S = 1.0
_ERROR = "error"
_WHOLE_VALUE = "value"
_TELL_APART = 100
_MOST_NAMED = 3
Audit = Callable[[App, FaultAuditRequest], FaultAudit]


class _AuditLook(Struct, frozen=True):
    """One look: the result of the audits, the duplicates of the whole run, and those that no mode allows.

    `is_known`: each phase could be audited.
    """

    said: FaultAudit
    twice: Duplicates
    wrong: Counter[str]
    is_known: bool = True

    def has_none_twice(self) -> bool:
        """Decide whether no two records had the same value."""
        return self.is_known and not (self.twice.of_enabled or self.twice.of_others)


class Proof:
    """The audits of one run: records after a fault are compared with all that were delivered before it.

    Transactions are judged from when all workers are enabled, values from the beginning of the run. Where no field is
    named, whole values stand in for it, as far as no two records had the same one before the fault.
    """

    def __init__(self, audit: Audit, plan: RehearsalPlan) -> None:
        self._audit, self._plan = audit, plan
        self._phases = [Phase(is_enabled=not plan.upgrades)]
        self._is_settling = False
        self._excused, self._held = Counter[str](), Counter[str]()
        self._at_rest: _AuditLook | None = None
        self._missing_at_rest: int | None = None
        self._seen = list[FoundPart]()

    def before(self, ground: Ground, *, leaves_mode: bool) -> None:
        """Look at the state before a fault; with `leaves_mode` not all workers are enabled soon.

        Raises EosctlError.
        """
        if self._stands_value_in():
            self._at_rest = self._look(ground)
        self._missing_at_rest = self._missing_numbers(ground)
        if leaves_mode and self._phases[-1].is_enabled:
            self._phases.append(Phase(False, ground.app.clock.now_ms(), ground.log_ends()))

    def enabled(self, ground: Ground, since_ms: int) -> None:
        """Begin the phase in which all workers are enabled: transactions are promised. Raise EosctlError."""
        self._phases.append(Phase(True, since_ms, ground.log_ends()))
        self._is_settling = True

    def of(self, ground: Ground) -> FaultAudit:
        """Audit up to now, without the findings of former rows; all tasks run again.

        It is repeated until every source partition and every sequence went on since the first look, and nothing is
        hidden by an open transaction.
        """
        first: FaultAudit | None = None
        for _ in Deadline.after(DELIVERY_S, ground.app.clock).rounds(_AGAIN_S):
            looked = self._look(ground)
            audited = looked.said
            first = first or audited
            idle = tuple(_idle(first, audited))
            is_sure = audited.verdict is not FaultVerdict.UNPROVEN
            if is_sure and (not idle or any(each.severity == _ERROR for each in self._new(audited))):
                break
        done = self._judged(audited, list(self._doubts(ground, idle)))
        self._held = looked.wrong
        if self._is_settling:
            self._excused, self._is_settling = looked.twice.of_others, False
        return done

    def _look(self, ground: Ground) -> _AuditLook:
        """Audit the transactions of the present phase, and the values of all phases."""
        unique, sequence = self._plan.unique, self._plan.sequence
        if self._stands_value_in():
            unique = _WHOLE_VALUE
        elif not self._plan.has_fields:
            return _AuditLook(self._ask(ground, self._phases[-1]), Duplicates(), Counter())
        # the oldest phase first: what comes meanwhile is missing from the longer windows, and never made up
        windows = [self._ask(ground, phase, unique=unique, sequence=sequence) for phase in self._phases]
        twice = duplicates(self._phases, [each.findings for each in windows])
        wrong = twice.of_enabled + (Counter[str]() if self._is_settling else twice.of_others - self._excused)
        if self._stands_value_in():
            said = self._with_repeats(self._ask(ground, self._phases[-1]), windows[0].findings, wrong)
        else:
            said = windows[0] if len(windows) == 1 else self._with_values(windows, wrong)
        return _AuditLook(said, twice, wrong, all(each.delivered is not None for each in windows))

    def _doubts(self, ground: Ground, idle: Sequence[str]) -> Iterator[str]:
        """Yield reasons not to call it proven although the audit found nothing."""
        if ground.missed:
            yield f"the fault did not hit: {'; '.join(ground.missed)}"
        if idle:
            yield f"{'; '.join(idle)} in the {DELIVERY_S:g} s after all tasks ran again"
        if self._missing_at_rest == 0 and self._missing_numbers(ground):
            name = self._plan.unique
            yield f"numbers are missing in {name}, where none were before: name --sequence {name} if it counts"

    def _missing_numbers(self, ground: Ground) -> int | None:
        """Count the numbers missing in the field of --unique; return None if unknown, or if --sequence judges."""
        if self._plan.sequence is not None or self._plan.unique is None:
            return None
        whole = self._ask(ground, self._phases[0], sequence=self._plan.unique)
        return None if whole.unread or whole.delivered is None else missing_numbers(whole.findings)

    def _stands_value_in(self) -> bool:
        return DUPLICATES in self._plan.not_judged()

    def _ask(
        self, ground: Ground, phase: Phase, *, unique: str | None = None, sequence: str | None = None
    ) -> FaultAudit:
        window = AuditedWindow(since_ms=phase.since_ms, until_ms=ground.app.clock.now_ms())
        asked = FaultAuditRequest(
            ground.connector, window, unique, sequence, tuple(ground.offsets_topics), phase.begin,
            is_present=phase is self._phases[-1],
        )  # fmt: skip
        return replace(self._audit(ground.app_now(), asked), window=window)

    def _with_values(self, windows: Sequence[FaultAudit], wrong: Counter[str]) -> FaultAudit:
        """Combine the last window's transactions with the whole run's values."""
        said = windows[-1]
        found = (*held_against(windows[0].findings, wrong - self._held), *not_of_values(said.findings))
        unread = _distinct(each for window in windows for each in window.unread)
        lacks = _distinct([*said.lacks, *unread])
        verdict, why = said.verdict, said.why
        if any(each.severity == _ERROR for each in found):
            verdict = FaultVerdict.NOT_EXACTLY_ONCE
        elif verdict is not FaultVerdict.UNPROVEN:
            verdict = FaultVerdict.EXACTLY_ONCE
            if unread or (lacks and said.verdict is FaultVerdict.NOT_EXACTLY_ONCE):
                verdict, why = FaultVerdict.UNPROVEN, f"Not proven: {'; '.join(lacks)}. {why}"
        return replace(said, verdict=verdict, why=why, findings=found, lacks=lacks, unread=unread)

    def _with_repeats(self, said: FaultAudit, twice: Sequence[FoundPart], wrong: Counter[str]) -> FaultAudit:
        """Add what whole values and source offsets show of records repeated since the fault."""
        if self._at_rest is None:
            return said
        before = self._at_rest.said.offsets or SourceOffsets()
        now = said.offsets or SourceOffsets()
        back = [each for each in now.went_back if each not in before.went_back]
        found = [self._finding(OFFSETS_WENT_BACK, each, {}) for each in back]
        again = sum((wrong - self._at_rest.wrong).values())
        has_returned = bool(back) or now.returned > before.returned
        is_first = before.repeated == 0 and now.repeated > 0
        lacks: tuple[str, ...] = ()
        is_run = (self._at_rest.said.delivered or 0) >= _TELL_APART and comes_in_a_run(twice)
        if again >= A_RUN and self._at_rest.has_none_twice() and (back or is_first or is_run):
            words = f"{counted(again, 'record')} had the same value as one that was delivered before"
            found.append(self._finding(DUPLICATE, words, {"count": again, "in_all": wrong.total()}))
        elif again or has_returned:
            what = f"{counted(again, 'record')} had the value of one before" if again else "a former source offset came"
            lacks = (f"{what} again, and no field distinguishes records: name one with --unique",)
        if not found and not lacks:
            return said
        verdict = FaultVerdict.NOT_EXACTLY_ONCE if found else said.verdict
        if verdict is FaultVerdict.EXACTLY_ONCE:
            verdict = FaultVerdict.UNPROVEN
        why = "; ".join([*(each.message for each in found), *lacks, said.why])
        return replace(said, verdict=verdict, why=why, findings=(*found, *said.findings), lacks=(*lacks, *said.lacks))

    def _finding(self, code: Code, message: str, evidence: Mapping[str, int]) -> FoundPart:
        subject = self._plan.connector_name
        return FoundPart(code=str(code), severity=_ERROR, subject=subject, message=message, evidence=evidence)

    def _new(self, audited: FaultAudit) -> tuple[FoundPart, ...]:
        return tuple(each for each in audited.findings if each not in self._seen)

    def _judged(self, audited: FaultAudit, doubts: Sequence[str]) -> FaultAudit:
        """Judge the fault: exactly_once only if nothing speaks against it."""
        new = self._new(audited)
        self._seen += new
        verdict, why = audited.verdict, audited.why
        if verdict is FaultVerdict.NOT_EXACTLY_ONCE and not any(each.severity == _ERROR for each in new):
            verdict, why = FaultVerdict.EXACTLY_ONCE, "nothing but what an earlier row has was found"
            if audited.lacks:
                verdict = FaultVerdict.UNPROVEN
                why = f"{why}, and not all could be proven: {'; '.join(audited.lacks)}"
        if verdict is FaultVerdict.EXACTLY_ONCE and doubts:
            verdict, why = FaultVerdict.UNPROVEN, f"{'; '.join(doubts)}; {why}"
        if verdict is FaultVerdict.EXACTLY_ONCE and (not_judged := self._plan.not_judged(left_mode=self._is_settling)):
            verdict = FaultVerdict.EXACTLY_ONCE_BY_TRANSACTIONS
            why = f"as far as transactions show ({' and '.join(not_judged)} not judged): {why}"
        return replace(audited, verdict=verdict, why=why, findings=new)


def _idle(first: FaultAudit, now: FaultAudit) -> Iterator[str]:
    """Yield what has not been delivered since the first look."""
    if first.delivered is None or now.delivered is None or now.delivered <= first.delivered:
        yield "no record was committed"
        return
    names = sorted(name for name, count in now.progress.items() if count <= first.progress.get(name, 0))
    yield from (f"{name} made no progress" for name in names[:_MOST_NAMED])
    if len(names) > _MOST_NAMED:
        yield f"{len(names) - _MOST_NAMED} more made no progress"


def _distinct(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))


_COUNTED = "info"
_STRANGE = (codes.PRODUCER_UNKNOWN, codes.FOREIGN_PRODUCER)


def audit_connector(app: App, asked: FaultAuditRequest) -> FaultAudit:
    """Audit from the window's begin to the end of the log; the verdict is unproven if something could not be read."""
    request = AuditRequest(
        connector=asked.connector,
        offsets_topics=asked.offsets_topics,
        unique=asked.unique,
        sequence=asked.sequence,
        writes_alone=True,
        **_begin(asked),
    )
    try:
        report = audit(app, request)
    except InterruptedByUserError:
        raise
    except EosctlError as exc:
        why = f"the audit failed: {exc.message}"
        return FaultAudit(FaultVerdict.UNPROVEN, why, lacks=(why,), unread=(why,))
    if report.exit_code is ExitCode.INTERRUPTED:
        raise KeyboardInterrupt  # the audit ends with what it read; a rehearsal ends, too
    (connector,) = report.data_of(AuditData).connectors
    seen, transactions = connector.transactions, counted(connector.transactions.committed, "transaction")
    records = counted(connector.records, "record")
    why = f"{connector.why} ({records} in {transactions}, {seen.aborted} aborted, {seen.open} open)"
    rows = report.rows_of(AuditRow)
    found = tuple(_part(row) for row in rows if not _is_expected(row, asked))
    strange = [row.message for row in rows if row.code in _STRANGE]
    offsets, progress, unread = _progress(app, asked, connector.topics)
    problems = [*(each.message for each in report.problems), *unread]
    lacks = tuple(dict.fromkeys([*problems, *connector.unproven, *connector.window.unseen, *strange]))
    verdict = FaultVerdict(connector.verdict.value)
    if verdict is FaultVerdict.EXACTLY_ONCE and problems:
        verdict, why = FaultVerdict.UNPROVEN, f"Not proven: {'; '.join(problems)}. {why}"
    return FaultAudit(
        verdict, why, found, lacks=lacks, unread=tuple(problems), delivered=connector.records, offsets=offsets,
        progress=progress,
    )  # fmt: skip


def _begin(asked: FaultAuditRequest) -> dict[str, Any]:
    """Return where the window begins: at positions of the logs if there are some, else at a time."""
    if asked.begin:
        return {"since": BEGINNING, "begin": asked.begin}
    return {"since": rfc3339(asked.window.since_ms or None) or BEGINNING}


def _progress(
    app: App, asked: FaultAuditRequest, topics: Sequence[str]
) -> tuple[SourceOffsets | None, dict[str, int], list[str]]:
    """Read the source offsets and the progress of each source partition and sequence; list what could not be read."""
    if not asked.is_present:
        return None, {}, []
    try:
        offsets = read_source_offsets(app, asked.connector)
        sequences = {} if asked.sequence is None else read_sequences(app, topics, asked.sequence)
    except InterruptedByUserError:
        raise
    except EosctlError as exc:
        return None, {}, [f"the progress was not read: {exc.message}"]
    commits = {f"source partition {name}": count for name, count in offsets.commits.items()}
    return offsets, {**commits, **sequences}, []


def _is_expected(row: AuditRow, asked: FaultAuditRequest) -> bool:
    """Decide whether a finding is expected: of severity info, or offsets that the rehearsal itself moved."""
    moved = row.code == codes.OFFSETS_ELSEWHERE and row.topic in asked.offsets_topics
    return moved or row.severity == _COUNTED


def _part(row: AuditRow) -> FoundPart:
    facts = {
        "first_offset": row.first_offset,
        "last_offset": row.last_offset,
        "count": row.count,
        "producer_id": row.producer_id,
        "producer_epoch": row.producer_epoch,
        "transactional_id": row.transactional_id,
        "at_ms": row.at_ms,
    }
    return FoundPart(
        code=row.code,
        severity=row.severity,
        subject=f"{row.topic}-{row.partition}",
        message=row.message,
        evidence={**facts, **row.evidence},
    )
