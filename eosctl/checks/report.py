"""The report of doctor's checks: rows, ignored findings, the exit code."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from eosctl.checks.causes import KAFKA
from eosctl.checks.group.state import group_state
from eosctl.checks.rows import DOCTOR, CheckPart, DoctorData, DoctorRow, DoctorSummary, GroupStatePart, doctor_row
from eosctl.checks.visit import Visit
from eosctl.core.findings import SEVERITIES, Finding, severity_counts, worst_first
from eosctl.core.wording import counted
from eosctl.errors import EosctlError, ExitCode
from eosctl.offsets.lint.rules import BEFORE_RESTARTS
from eosctl.output.rows import unseen_parts
from eosctl.report import Problem, Report, check_exit_code
from eosctl.txn import codes as txn_codes


class CheckResults(Struct, frozen=True):
    """The findings of each check, counting and ignored, and the errors of the checks that could not run."""

    findings: Mapping[str, Sequence[Finding]]
    ignored: Mapping[str, Sequence[Finding]]
    failed: Mapping[str, EosctlError]

    def missed(self) -> Mapping[str, EosctlError]:
        """Return the checks that could not run and are not ignored; all if none ran, as nothing is known then."""
        left_out = {
            each.subject for found in self.ignored.values() for each in found if each.code == txn_codes.NOT_CHECKED
        }
        accepted = set() if _nothing_ran(self.failed, self.findings.keys()) else left_out
        return {check: error for check, error in self.failed.items() if check not in accepted}

    def nothing_ran(self) -> EosctlError | None:
        """Return the first reason if no check could look at anything; else None."""
        return _reason(self.failed) if _nothing_ran(self.failed, self.findings.keys()) else None


def _rows(findings: Mapping[str, Sequence[Finding]]) -> list[DoctorRow]:
    every = worst_first(each for found in findings.values() for each in found)
    every.sort(key=lambda each: (SEVERITIES.index(each.severity), each.code not in BEFORE_RESTARTS))
    check_of = {id(each): check for check, found in findings.items() for each in found}
    return [doctor_row(check_of[id(each)], each) for each in every]


def doctor_report(visit: Visit, outcome: CheckResults, *, strict: bool) -> Report:
    """Make the report of a group's checks; see `checks_report`."""
    return checks_report(
        outcome, _group(visit), cluster_id=_cluster_id(visit), group_id=visit.app.target.group_id, strict=strict
    )


def checks_report(
    outcome: CheckResults, group: GroupStatePart | None, *, cluster_id: str | None, group_id: str | None, strict: bool
) -> Report:
    """Exit code 3 on an error, with `strict` also on a warning; else 7 where something that counts was not seen."""
    findings, missed = outcome.findings, outcome.missed()
    every = worst_first(each for found in findings.values() for each in found)
    ignored, unseen = _rows(outcome.ignored), unseen_parts(every)
    return Report(
        kind=DOCTOR,
        rows=_rows(findings),
        summary=DoctorSummary(
            checks=len(findings),
            not_checked=len(outcome.failed),
            findings=len(every),
            ignored=len(ignored),
            unseen=len(unseen),
            counts=severity_counts(every),
        ),
        data=DoctorData(
            group=group,
            checks=[
                CheckPart(
                    check=check,
                    status="not_checked" if check in outcome.failed else "checked",
                    findings=len(found),
                )
                for check, found in findings.items()
            ],
            ignored=ignored,
            unseen=unseen,
        ),
        target={"kafka_cluster_id": cluster_id, "group_id": group_id},
        problems=_problems(missed, checks=findings.keys()),
        exit_code=_exit_code(every, missed, checks=findings.keys(), strict=strict),
    )


def _group(visit: Visit) -> GroupStatePart | None:
    try:
        state = group_state(visit.observation())
    except EosctlError:
        return None
    return GroupStatePart(
        workers=state.workers,
        modes={mode.value: count for mode, count in state.modes.items()},
        source_tasks=state.source_tasks,
        not_exactly_once=state.not_exactly_once,
        failed_tasks=state.failed_tasks,
        sentence=state.sentence(),
    )


def _cluster_id(visit: Visit) -> str | None:
    try:
        return visit.observation().kafka_cluster_id
    except EosctlError:
        return None


def _exit_code(
    every: Sequence[Finding], failed: Mapping[str, EosctlError], *, checks: Collection[str], strict: bool
) -> ExitCode:
    if _nothing_ran(failed, checks):
        return _reason(failed).exit_code
    code = check_exit_code(every, strict=strict)
    return ExitCode.PARTIAL if failed and code is ExitCode.OK else code


def _problems(failed: Mapping[str, EosctlError], *, checks: Collection[str]) -> list[Problem]:
    """Return a problem where a check could not run, so that health is not proven; the rows have the details."""
    if not failed:
        return []
    if _nothing_ran(failed, checks):
        return [Problem.of(_reason(failed))]
    message = f"{counted(len(failed), 'check')} of {len(checks)} could not run: {', '.join(failed)}"
    return [Problem(txn_codes.NOT_CHECKED, message, "The rows say why.").as_warning()]


def _nothing_ran(failed: Mapping[str, EosctlError], checks: Collection[str]) -> bool:
    """Check whether no check could look at anything; an answer of Kafka proves nothing, and rights need principals."""
    return set(checks) - set(failed) <= {KAFKA, "acls"}


def _reason(failed: Mapping[str, EosctlError]) -> EosctlError:
    return next(iter(failed.values()))
