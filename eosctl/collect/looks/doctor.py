"""doctor's findings, without validations: those let connectors log in to their databases. Reads only."""

from __future__ import annotations

from msgspec import Struct

from eosctl.app import App
from eosctl.checks.group.state import group_state
from eosctl.checks.ignored import IgnoredFinding
from eosctl.checks.plan import diagnose
from eosctl.checks.visit import Visit
from eosctl.collect.facts import DoctorFacts, doubtful
from eosctl.collect.overview import Overview
from eosctl.core.findings import INFO, Finding, worst_first
from eosctl.core.workers.modes import Mode
from eosctl.errors import EosctlError
from eosctl.observation.connectors import codes


class DoctorLook(Struct, frozen=True):
    """Runs every check; findings that `ignore` names are left out."""

    ignore: tuple[IgnoredFinding, ...] = ()

    def __call__(self, app: App, overview: Overview) -> DoctorFacts:
        """Run doctor's checks. Raises the first reason if none could run; a check that could not keeps its former
        findings.

        Not where that is ignored or lasts: nothing would show that the finding is an old one, and it would never go.
        """
        mode = app.target.expect.get("mode")
        diagnosis = diagnose(app, validate=False, expected=Mode(mode) if mode else None, ignore=self.ignore)
        results = diagnosis.results
        reason = results.nothing_ran()
        if reason is not None:
            raise reason
        before = overview.facts(DoctorFacts)
        by_check = {
            check: tuple(each for each in its if not _is_asked_for(each)) for check, its in diagnosis.findings.items()
        }
        failed = {check: str(error.code) for check, error in results.missed().items()}
        by_check |= {check: before.by_check.get(check, ()) for check in doubtful(failed)} if before else {}
        found = worst_first(each for its in by_check.values() for each in its)
        return DoctorFacts(tuple(found), failed, _sentence(diagnosis.visit), by_check)


def _is_asked_for(finding: Finding) -> bool:
    """Check whether the finding only reports that nothing was validated."""
    return finding.code == codes.SUPPORT_UNKNOWN and finding.severity == INFO


def _sentence(visit: Visit) -> str:
    """Describe the group; empty where it could not be observed, which the checks report."""
    try:
        return group_state(visit.observation()).sentence()
    except EosctlError:
        return ""
