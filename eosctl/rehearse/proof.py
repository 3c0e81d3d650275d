"""What an audit says of the time around each fault; what an earlier row has is not said again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from eosctl.app import App
from eosctl.rehearse.ground import Ground
from eosctl.rehearse.plan import RehearsalPlan
from eosctl.rehearse.rows import AuditedWindow, FaultVerdict, FoundPart


@dataclass(frozen=True, slots=True)
class Asked:
    """What is audited: a connector in a window, and the fields that are unique or count, where there are some.

    `offsets_topics` are those in which it had its offsets for a while.
    """

    connector: str
    window: AuditedWindow
    unique: str | None
    sequence: str | None
    offsets_topics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AuditSaid:
    """What the audit says, why, and what it found."""

    verdict: FaultVerdict
    why: str
    findings: tuple[FoundPart, ...] = ()
    window: AuditedWindow | None = field(default=None)


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

    def of(self, ground: Ground, *, until_ms: int) -> AuditSaid:
        """The audit up to a moment, without the findings that a former one has had."""
        window = AuditedWindow(since_ms=self._since_ms, until_ms=until_ms)
        asked = Asked(ground.connector, window, self._plan.unique, self._plan.sequence, tuple(ground.offsets_topics))
        audited = self._audit(ground.app_now(), asked)
        new = tuple(each for each in audited.findings if each not in self._seen)
        self._seen += new
        verdict, why = audited.verdict, audited.why
        if verdict is FaultVerdict.NOT_EXACTLY_ONCE and not any(each.severity == "error" for each in new):
            verdict, why = FaultVerdict.EXACTLY_ONCE, "nothing but what an earlier row has was found"
        return replace(audited, verdict=verdict, why=why, findings=new, window=window)
