"""One rehearsal from its start to its report, on a ground without processes: rows, verdicts, exit codes, the end."""

from __future__ import annotations

import importlib
import io
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import pytest
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.workers.modes import Mode
from eosctl.deadline import Deadline, Event
from eosctl.errors import DeadlineError, EosctlError, ExitCode
from eosctl.rehearse.faults.fault import SimpleFault
from eosctl.rehearse.plan import RehearsalPlan, RehearsalRequest
from eosctl.rehearse.proof import FaultAudit, FaultAuditRequest
from eosctl.rehearse.report import page_of
from eosctl.rehearse.rows import REHEARSE_RESULT, FaultRow, FaultVerdict, FoundPart, RehearsalSummary, Surroundings
from eosctl.rehearse.run import rehearse_on
from eosctl.report import Problem, Report
from eosctl.target import Target
from tests.fakes.clock import FakeTime
from tests.schema_check import faults_of


class Fine(SimpleFault):
    """One after which all is well."""

    name: ClassVar[str] = "fine"
    what: ClassVar[str] = "do nothing"

    def inject(self, ground: Any) -> None:
        ground.note(f"chose {ground.choose.randrange(10**6)}")


class Other(Fine):
    name: ClassVar[str] = "other"


class Rolled(Fine):
    name: ClassVar[str] = "rolled"
    leaves_mode: ClassVar[bool] = True


class Stuck(Fine):
    """One after which the tasks never run again."""

    name: ClassVar[str] = "stuck"

    def recovered(self, _ground: Any) -> bool:
        return False


class Interrupted(Fine):
    name: ClassVar[str] = "interrupted"

    def inject(self, _ground: Any) -> None:
        raise KeyboardInterrupt


@dataclass
class QuietGround:
    """What faults are told of where there is no sandbox."""

    app: App
    connector: str = "lines"
    choose: random.Random = field(default_factory=random.Random)
    notes: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    offsets_topics: list[str] = field(default_factory=list)
    ends: dict[tuple[str, int], int] = field(default_factory=dict)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def miss(self, why: str) -> None:
        self.missed.append(why)

    def app_now(self) -> App:
        return self.app

    def begin_fault(self) -> None:
        self.missed.clear()

    def await_snapshot(self) -> None:
        return

    def log_ends(self) -> dict[tuple[str, int], int]:
        self.ends = {("t", 0): self.ends.get(("t", 0), 0) + 10}
        return self.ends

    def await_well(self, *, within_s: float, ready: Callable[[], bool]) -> float:
        if not ready():
            raise DeadlineError(f"not well again within {within_s:g} s: task 0 FAILED")
        return self.app.clock.monotonic_s()


@dataclass
class QuietStage:
    ground: Any
    closed: int = 0
    error: EosctlError | None = None
    close_error: BaseException | None = None

    def open(self) -> None:
        if self.error is not None:
            raise self.error

    def close(self) -> None:
        self.closed += 1
        if self.close_error is not None:
            raise self.close_error


def found(code: str, severity: str = "error", **evidence: object) -> FoundPart:
    return FoundPart(code=code, severity=severity, subject="t-0", message=f"{code}!", evidence=evidence)


def told(
    *answers: tuple[FaultVerdict, list[FoundPart]], lacks: tuple[str, ...] = (), grows: bool = True
) -> tuple[Callable[[App, FaultAuditRequest], FaultAudit], list[FaultAuditRequest]]:
    """An audit that gives these answers in turn, the last one again and again; and what it was asked.

    `grows`: each time more was delivered, and a row takes two audits.
    """
    asked = list[FaultAuditRequest]()

    def audit(_app: App, question: FaultAuditRequest) -> FaultAudit:
        asked.append(question)
        verdict, findings = answers[min(len(asked), len(answers)) - 1]
        delivered = len(asked) if grows else 7
        return FaultAudit(verdict, "looked at 7 records", tuple(findings), lacks=lacks, delivered=delivered)

    return audit, asked


FINE = told((FaultVerdict.EXACTLY_ONCE, []))[0]


@dataclass
class Run:
    report: Report
    stage: QuietStage
    events: list[Event]

    @property
    def rows(self) -> dict[str, FaultRow]:
        return {row.fault: row for row in self.report.rows_of(FaultRow)}


def run(
    *kinds: type[Any],
    audit: Any = FINE,
    error: EosctlError | None = None,
    close_error: BaseException | None = None,
    **request: Any,
) -> Run:
    clock = FakeTime(1000.0).clock()
    events, came = list[Event](), list[FaultRow]()
    app = App(Target(), Deadline.after(60, clock), Path("/nowhere"), clock=clock, on_event=events.append)
    asked = RehearsalRequest(seed=5, start_mode=Mode.ENABLED, **request)
    plan = RehearsalPlan(asked, "4.3.1", "rehearse-1", None, kinds, {"broker-kill": "needs 3 brokers (--brokers 3)"})
    stage = QuietStage(QuietGround(app), error=error, close_error=close_error)
    report = rehearse_on(stage, app, plan, audit=audit, on_row=came.append)
    assert came == list(report.rows)
    assert faults_of(json.loads(json.dumps(report.envelope()))) == []
    return Run(report, stage, events)


def test_all_is_well() -> None:
    done = run(Fine, Other)
    assert (done.report.exit_code, done.report.summary.verdict) == (ExitCode.OK, FaultVerdict.EXACTLY_ONCE)
    assert done.stage.closed == 1
    assert {row.verdict for row in done.rows.values()} == {FaultVerdict.EXACTLY_ONCE}
    assert done.rows["fine"].evidence.endswith("; looked at 7 records")


def test_the_victims_are_the_same_with_the_same_seed() -> None:
    assert [row.evidence for row in run(Fine, Other).rows.values()] == [
        row.evidence for row in run(Other, Fine).rows.values()
    ]


@pytest.mark.parametrize(
    ("verdict", "code"),
    [
        (FaultVerdict.EXACTLY_ONCE, ExitCode.OK),
        (FaultVerdict.NOT_EXACTLY_ONCE, ExitCode.FINDINGS),
        (FaultVerdict.UNPROVEN, ExitCode.PARTIAL),
    ],
)
def test_the_exit_code_is_that_of_the_worst_verdict(verdict: FaultVerdict, code: ExitCode) -> None:
    audit, _asked = told((FaultVerdict.EXACTLY_ONCE, []), (verdict, [found("duplicate")]))
    done = run(Fine, Other, audit=audit)
    assert (done.report.exit_code, done.report.summary.verdict) == (code, verdict)


def test_a_finding_is_of_the_fault_after_which_it_is_new() -> None:
    """Every audit looks at all that was delivered: a duplicate of the first fault would be one of all others, too."""
    first, grown = [found("duplicate", offset=3)], [found("duplicate", offset=3), found("gap", "warning")]
    audit, asked = told((FaultVerdict.NOT_EXACTLY_ONCE, first), (FaultVerdict.NOT_EXACTLY_ONCE, grown))
    done = run(Fine, Other, audit=audit)
    rows = done.report.rows_of(FaultRow)
    assert [[each.code for each in row.findings] for row in rows] == [["duplicate"], ["gap"]]
    assert [row.verdict for row in rows] == [FaultVerdict.NOT_EXACTLY_ONCE, FaultVerdict.EXACTLY_ONCE]
    assert done.report.exit_code is ExitCode.FINDINGS
    assert {each.window.since_ms for each in asked} == {0}


def test_a_fault_after_which_nothing_is_delivered_proves_nothing() -> None:
    """All tasks RUNNING, and not one record more: such a connector used to pass."""
    audit, asked = told((FaultVerdict.EXACTLY_ONCE, []), grows=False)
    done = run(Fine, audit=audit)
    assert done.rows["fine"].verdict is FaultVerdict.UNPROVEN
    assert "no record was committed in the 30 s after all tasks ran again" in done.rows["fine"].evidence
    assert len(asked) > 20
    assert done.report.exit_code is ExitCode.PARTIAL


def test_what_an_open_transaction_hides_is_looked_at_again() -> None:
    audit, asked = told((FaultVerdict.EXACTLY_ONCE, []), (FaultVerdict.UNPROVEN, []), (FaultVerdict.EXACTLY_ONCE, []))
    assert run(Fine, audit=audit).rows["fine"].verdict is FaultVerdict.EXACTLY_ONCE
    assert len(asked) == 3


def test_a_finding_ends_the_wait() -> None:
    audit, asked = told((FaultVerdict.NOT_EXACTLY_ONCE, [found("duplicate")]), grows=False)
    assert run(Fine, audit=audit).rows["fine"].verdict is FaultVerdict.NOT_EXACTLY_ONCE
    assert len(asked) == 1


def test_an_old_finding_does_not_hide_what_is_unreadable_now() -> None:
    """From the first finding on each row used to be exactly_once, whatever could not be read."""
    audit, _asked = told((FaultVerdict.NOT_EXACTLY_ONCE, [found("duplicate")]), lacks=("t-0 has no leader",))
    rows = run(Fine, Other, audit=audit).report.rows_of(FaultRow)
    assert [row.verdict for row in rows] == [FaultVerdict.NOT_EXACTLY_ONCE, FaultVerdict.UNPROVEN]
    assert "t-0 has no leader" in rows[1].evidence


class Misses(Fine):
    """One that hits with its second attempt, if `at` says so."""

    name: ClassVar[str] = "misses"
    times: ClassVar[list[str]] = []
    at: ClassVar[int] = 2

    def inject(self, ground: Any) -> None:
        self.times.append("tried")
        if len(self.times) < self.at:
            ground.miss("no transaction was open")


@pytest.mark.parametrize(("hits_at", "verdict"), [(1, "exactly_once"), (2, "exactly_once"), (3, "unproven")])
def test_a_fault_that_did_not_hit_is_tried_once_more(hits_at: int, verdict: str) -> None:
    """A worker killed without an open transaction, no connection cut: that was a note, and the row passed."""
    kind: type[Any] = type("Now", (Misses,), {"times": [], "at": hits_at})
    row = run(kind).rows["misses"]
    assert (row.verdict.value, len(kind.times)) == (verdict, min(hits_at, 2))
    assert ("the fault did not hit: no transaction was open" in row.evidence) is (verdict == "unproven")


class Unseen(Fine):
    """One of which the log shows nothing."""

    name: ClassVar[str] = "unseen"

    def verify(self, ground: Any) -> None:
        ground.miss("the log shows no aborted transaction")


def test_a_fault_that_nothing_shows_is_unproven_and_the_text_says_why() -> None:
    """The text had no word of the reason."""
    report = run(Unseen).report
    (row,) = report.rows_of(FaultRow)
    assert (row.verdict, report.exit_code) == (FaultVerdict.UNPROVEN, ExitCode.PARTIAL)
    assert "the log shows no aborted transaction" in row.why
    assert REHEARSE_RESULT.text is not None
    assert f"unseen: unproven: {row.why}" in list(REHEARSE_RESULT.text.lines(report))


class HalfDone(Fine):
    """One that ends in the middle, with a worker that is frozen."""

    name: ClassVar[str] = "half-done"
    undone: ClassVar[list[str]] = []
    ends: ClassVar[BaseException] = EosctlError("the tasks did not leave")

    def inject(self, _ground: Any) -> None:
        raise self.ends

    def undo(self, _ground: Any) -> None:
        self.undone.append("went on")
        raise EosctlError("nor can it be undone")


@pytest.mark.parametrize(
    ("ends", "keep", "undone"),
    [
        (EosctlError("the tasks did not leave"), False, ["went on"]),
        (KeyboardInterrupt(), True, ["went on"]),
        (KeyboardInterrupt(), False, []),
    ],
)
def test_a_fault_that_half_began_is_undone(ends: BaseException, keep: bool, undone: list[str]) -> None:
    """--keep used to leave a frozen worker behind; a sandbox that is not kept ends with all that is in it."""
    kind: type[Any] = type("Now", (HalfDone,), {"undone": [], "ends": ends})
    done = run(kind, keep=keep)
    assert (kind.undone, done.stage.closed) == (undone, 1)
    code = ExitCode.INTERRUPTED if isinstance(ends, KeyboardInterrupt) else ExitCode.FINDINGS
    assert done.report.exit_code is code


@pytest.mark.parametrize("why", [EosctlError("still running after SIGKILL"), OSError("no space"), KeyboardInterrupt()])
def test_a_sandbox_that_does_not_end_takes_no_row_with_it(why: BaseException) -> None:
    """All that was seen used to be lost."""
    done = run(Fine, close_error=why)
    assert (set(done.rows), done.report.exit_code) == ({"fine"}, ExitCode.PARTIAL)
    assert [problem.code for problem in done.report.problems] == ["sandbox_left"]
    assert "eosctl sandbox down --name rehearse-1" in str(done.report.problems[0].hint)


def test_the_transactions_of_a_row_are_those_since_all_workers_are_enabled_and_its_values_those_of_the_run() -> None:
    audit, asked = told((FaultVerdict.EXACTLY_ONCE, []))
    done = run(Rolled, audit=audit)
    row = done.rows["rolled"]
    assert row.window is not None
    assert row.window.since_ms == row.at_ms + (row.recovered_ms or 0)
    assert [question.begin for question in asked[:3]] == [{}, {("t", 0): 10}, {("t", 0): 20}]
    windows = [question.window.since_ms for question in asked]
    assert windows == sorted(windows[:3]) * 2
    assert (windows[0], windows[2]) == (0, row.window.since_ms)


def test_tasks_that_do_not_run_again_end_it() -> None:
    done = run(Stuck)
    row = done.rows["stuck"]
    assert (row.verdict, row.recovered_ms, row.window) == (FaultVerdict.NOT_RECOVERED, None, None)
    assert [each.code for each in row.findings] == ["tasks_not_running"]
    assert done.report.exit_code is ExitCode.FINDINGS
    assert [problem.code for problem in done.report.problems] == ["rehearsal_ended_early"]
    assert "task 0 FAILED" in done.report.problems[0].message
    assert done.stage.closed == 1


def test_a_sandbox_that_does_not_start_is_an_error_of_its_own() -> None:
    done = run(Fine, error=EosctlError("the worker does not take the config"))
    assert (done.report.exit_code, list(done.report.rows), done.stage.closed) == (ExitCode.FAILED, [], 1)
    assert "the start: the worker does not take the config" in done.report.problems[0].message


def test_ctrl_c_ends_it_with_what_was_seen() -> None:
    done = run(Fine, Interrupted, minutes=1)
    assert (done.report.exit_code, done.stage.closed) == (ExitCode.INTERRUPTED, 1)
    assert set(done.rows) <= {"fine"}


def test_faults_are_repeated_for_as_long_as_is_asked() -> None:
    once, longer = run(Fine, Other), run(Fine, Other, minutes=1)
    assert len(once.report.rows) == 2
    assert 10 < len(longer.report.rows) < 60


def test_the_table_has_a_line_for_each_fault() -> None:
    seen = [event for event in run(Fine, Other).events if event.standings]
    assert {event.heading for event in seen} == {"FAULT"}
    assert {each.subject for event in seen for each in event.standings} == {"fine", "other"}
    assert {each.state for each in seen[-1].standings} == {"done"}
    assert {each.state for each in seen[0].standings} == {"to come"}


def test_rows_are_printed_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """With ndjson; and not once more at the end."""
    session = importlib.import_module("eosctl.commands.frame.session").Session(environ={})
    session.flags["output"] = "ndjson"
    out = io.StringIO()
    monkeypatch.setattr("sys.stdout", out)
    report = run(Fine).report
    session.row_printer()(report.rows[0])
    assert json.loads(out.getvalue())["fault"] == "fine"
    assert list(session.without_printed_rows(report).rows) == []


def test_other_formats_wait_for_the_end() -> None:
    session = importlib.import_module("eosctl.commands.frame.session").Session(environ={})
    report = run(Fine).report
    session.row_printer()(report.rows[0])
    assert session.without_printed_rows(report) is report


def test_the_page_stands_alone(golden: Callable[[str, str], None]) -> None:
    audit, _asked = told((FaultVerdict.NOT_EXACTLY_ONCE, [found("duplicate", where="<t>")]))
    done = run(Fine, audit=audit)
    row = replace_message(done.rows["fine"], "the <b>record</b> twice")
    page = page_of(replace(done.report, rows=[row]))
    golden("rehearse/page.html", page.replace(version("eosctl"), "VERSION"))
    assert "<b>" not in page
    assert "://" not in page
    assert "not exactly once" in page


def test_the_page_shows_nothing_of_others_as_it_is() -> None:
    """Marks of direction and control characters stood in the page."""
    import msgspec

    nasty = "a\n<script>b</script>\x9b\u202e\x1b[2J"
    done = run(Fine)
    plain = page_of(done.report)
    row = msgspec.structs.replace(done.rows["fine"], fault=nasty, evidence=nasty)
    data = msgspec.structs.replace(
        done.report.data_of(Surroundings), connector_class=nasty, outside={nasty: nasty}, shared={nasty: nasty},
        changed=[nasty], taken=[nasty], not_taken=[nasty], repeat=nasty,
    )  # fmt: skip
    summary = msgspec.structs.replace(done.report.summary_of(RehearsalSummary), connector=nasty, kafka_version=nasty)
    problem = Problem(EosctlError.code, nasty)
    page = page_of(replace(done.report, rows=[row], summary=summary, data=data, problems=[problem]))
    assert "<script" not in page
    assert all(line.isprintable() for line in page.split("\n"))
    assert page.count("&lt;script&gt;") >= 13
    assert len(page.split("\n")) <= len(plain.split("\n")) + 7  # a line for each fact that is there now


def replace_message(row: FaultRow, message: str) -> FaultRow:
    import msgspec

    changed = msgspec.structs.replace(row.findings[0], message=message)
    return msgspec.structs.replace(row, findings=[changed])
