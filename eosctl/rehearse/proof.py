"""What an audit says of the time around each fault; what an earlier row has is not said again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace

from eosctl.app import App
from eosctl.core.frozen import frozen
from eosctl.deadline import Deadline
from eosctl.rehearse.ground import Ground
from eosctl.rehearse.plan import RehearsalPlan
from eosctl.rehearse.rows import AuditedWindow, FaultVerdict, FoundPart


@frozen
class Asked:
    """What is audited: a connector in a window, and the fields that are unique or count, where there are some.

    `offsets_topics` are those in which it had its offsets for a while.
    """

    connector: str
    window: AuditedWindow
    unique: str | None
    sequence: str | None
    offsets_topics: tuple[str, ...] = ()


@frozen
class AuditSaid:
    """What the audit says, why, and what it found.

    `lacks` is what it could not look at, which findings would hide. `delivered` is how many records were committed in
    the window; None where that is not known.
    """

    verdict: FaultVerdict
    why: str
    findings: tuple[FoundPart, ...] = ()
    window: AuditedWindow | None = field(default=None)
    lacks: tuple[str, ...] = ()
    delivered: int | None = None


DELIVERY_S = 30.0
_AGAIN_S = 1.0
_ERROR = "error"
Audit = Callable[[App, Asked], AuditSaid]


class Proof:
    """Audits from one begin on: what comes after a fault is held against all that was delivered before it."""

    def __init__(self, audit: Audit, plan: RehearsalPlan) -> None:
        self._audit, self._plan = audit, plan
        self._since_ms = 0
        self._seen = list[FoundPart]()

    def begin(self, since_ms: int) -> None:
        """What is older counts no more: the workers were not enabled then."""
        self._since_ms = since_ms
        self._seen.clear()

    def of(self, ground: Ground) -> AuditSaid:
        """The audit up to now, without the findings that a former one has had; all tasks run again.

        It is repeated until a record is committed after the first one, and nothing is hidden by an open transaction.
        """
        delivered: int | None = None
        for _ in Deadline.after(DELIVERY_S, ground.app.clock).rounds(_AGAIN_S):
            audited = self._ask(ground)
            has_grown = None not in (delivered, audited.delivered) and audited.delivered != delivered
            delivered = audited.delivered if delivered is None else delivered
            is_sure = audited.verdict is not FaultVerdict.UNPROVEN
            if is_sure and (has_grown or any(each.severity == _ERROR for each in self._new(audited))):
                break
        return self._judged(audited, has_grown=has_grown, missed=ground.missed)

    def _ask(self, ground: Ground) -> AuditSaid:
        window = AuditedWindow(since_ms=self._since_ms, until_ms=ground.app.clock.now_ms())
        asked = Asked(ground.connector, window, self._plan.unique, self._plan.sequence, tuple(ground.offsets_topics))
        return replace(self._audit(ground.app_now(), asked), window=window)

    def _new(self, audited: AuditSaid) -> tuple[FoundPart, ...]:
        return tuple(each for each in audited.findings if each not in self._seen)

    def _judged(self, audited: AuditSaid, *, has_grown: bool, missed: Sequence[str]) -> AuditSaid:
        """What is said of the fault: it is exactly_once only if it hit, and records came after it."""
        new = self._new(audited)
        self._seen += new
        verdict, why = audited.verdict, audited.why
        if verdict is FaultVerdict.NOT_EXACTLY_ONCE and not any(each.severity == _ERROR for each in new):
            verdict, why = FaultVerdict.EXACTLY_ONCE, "nothing but what an earlier row has was found"
            if audited.lacks:
                verdict, why = (
                    FaultVerdict.UNPROVEN,
                    f"{why}, and not all could be looked at: {'; '.join(audited.lacks)}",
                )
        if verdict is FaultVerdict.EXACTLY_ONCE and missed:
            verdict, why = FaultVerdict.UNPROVEN, f"the fault did not hit: {'; '.join(missed)}; {why}"
        if verdict is FaultVerdict.EXACTLY_ONCE and not has_grown:
            nothing = f"no record was committed in the {DELIVERY_S:g} s after all tasks ran again"
            verdict, why = FaultVerdict.UNPROVEN, f"{nothing}; {why}"
        return replace(audited, verdict=verdict, why=why, findings=new)
