"""connectors check: whether each source connector can be, and each of its tasks really is, exactly-once. Reads only.

The rules are those of the upgrade's gates (`core.connector_findings`); here they speak per connector and task.
"""

from __future__ import annotations

from collections.abc import Sequence

from eosctl.core.connector_findings import connector_findings, group_findings
from eosctl.core.findings import INFO, Finding, is_bad, severity_counts, worst_first
from eosctl.core.upgrade_observation import Observation, ObservedConnector
from eosctl.errors import ExitCode, NotFoundError, UnreachableError
from eosctl.ops.app import App
from eosctl.ops.upgrade_observe import observe_connectors
from eosctl.ops.workers import observe_workers
from eosctl.report import Report


def check_connectors(app: App, names: Sequence[str] = (), *, strict: bool = False) -> Report:
    """Findings about the source connectors (or `names`); exit 3 on an error, with `strict` also on a warning.

    Raises NotFoundError for a name that no connector has, UnreachableError when no worker tells of connectors, and
    what `observe_workers` raises.
    """
    observation = observe_connectors(app, observe_workers(app))
    chosen = _chosen(observation, names)
    more = _sinks(chosen) if names else group_findings(observation)
    findings = worst_first([*connector_findings(observation, chosen), *more])
    sources = [each for each in chosen if each.type == "source"]
    return Report(
        kind="connectors-check",
        rows=[each.as_row() for each in findings],
        summary={
            "connectors": len(sources),
            "tasks": sum(len(each.tasks()) for each in sources),
            "findings": len(findings),
            "counts": severity_counts(findings),
        },
        data={"connectors": [each.name for each in sources]},
        target={"kafka_cluster_id": observation.kafka_cluster_id, "group_id": app.target.group_id},
        exit_code=ExitCode.FINDINGS if is_bad(findings, strict=strict) else ExitCode.OK,
    )


def _chosen(observation: Observation, names: Sequence[str]) -> list[ObservedConnector]:
    if observation.connectors is None:
        raise UnreachableError(
            f"no worker tells which connectors there are: {observation.why_unseen('connectors')}",
            hint="Give the URL of a worker that can be reached from here with -u.",
        )
    there = {each.name: each for each in observation.connectors}
    missing = sorted(set(names) - set(there))
    if missing:
        raise NotFoundError(
            f"there is no connector {', '.join(missing)}", hint="Names are case-sensitive: see `eosctl workers list`."
        )
    return [there[name] for name in dict.fromkeys(names)] if names else list(observation.connectors)


def _sinks(chosen: Sequence[ObservedConnector]) -> list[Finding]:
    """A sink that was named is not passed over in silence."""
    return [
        Finding("not_a_source", INFO, each.name, f"{each.name} is a {each.type} connector: nothing to check", "None.")
        for each in chosen
        if each.type != "source"
    ]
