"""doctor's check of the workers: silent ones, departed ones, missing plugins, wrong clocks. Reads only."""

from __future__ import annotations

from collections.abc import Iterable

from eosctl.checks import codes
from eosctl.checks.cluster.versions import worker_findings
from eosctl.checks.group.clocks import clock_findings
from eosctl.checks.group.departed import find_departed, not_a_member
from eosctl.checks.group.plugins import missing_plugins
from eosctl.checks.group.rules import problem_findings
from eosctl.checks.visit import Visit
from eosctl.checks.workers import group_problems, silent_problem, workers_behind
from eosctl.core.findings import ERROR, INFO, WARNING, Finding
from eosctl.core.wording import counted
from eosctl.errors import EosctlError
from eosctl.group.codes import WORKER_NOT_A_MEMBER
from eosctl.group.observed import WorkerObservation
from eosctl.observation.connectors.folds import fold_alike


def member_findings(visit: Visit) -> Iterable[Finding]:
    """Return findings about the workers of the group: silent, gone, outside, behind, or different from others."""
    seen = visit.seen()
    problems = group_problems(visit.app, visit.group(), None if seen is None else seen.config_read)
    if visit.group().is_mirror_maker:
        return [_mirror_maker(visit), *problem_findings("workers", problems)]
    silent = fold_alike(_silent_finding(*each) for each in visit.silent())
    outside = [not_a_member(each) for each in visit.group().members if each.outside]
    lacking = [] if seen is None else missing_plugins(visit.group(), seen)
    departed, untold = ((), ()) if seen is None else find_departed(visit.app, visit.group(), seen, visit.statuses())
    behind = workers_behind(visit.app, visit.group())
    return [
        *silent,
        *outside,
        *departed,
        *lacking,
        *behind,
        *clock_findings(visit.app, visit.group(), None if seen is None else seen.coordinators_ms),
        *worker_findings(visit.group()),
        *problem_findings("workers", [each for each in (*problems, *untold) if each.code != WORKER_NOT_A_MEMBER]),
    ]


def _mirror_maker(visit: Visit) -> Finding:
    """Make the finding for a dedicated MirrorMaker, in place of those that need a worker's answer. It is no fault."""
    workers = counted(len(visit.group().members), "worker")
    return Finding(
        codes.DEDICATED_MIRROR_MAKER, INFO, str(visit.group().group_id),
        f"{visit.group().group_id} is the group of a dedicated MirrorMaker: {workers} without a REST interface",
        "Nothing; the modes of its workers are in its files and logs only.",
    )  # fmt: skip


def _silent_finding(worker: WorkerObservation, failure: EosctlError) -> Finding:
    """Make the finding for a silent worker: an error if unreachable, as nothing can be proven of its group then."""
    problem = silent_problem(failure)
    severity = ERROR if worker.health == "unreachable" else WARNING
    return Finding(
        problem.code,
        severity,
        str(worker.url),
        problem.message,
        problem.hint or "See the message.",
        certain=severity == ERROR,
    )
