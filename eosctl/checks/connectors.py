"""`connectors check`: checks whether source connectors can be, and their tasks really are, exactly-once. Reads only.

The rules are those of the upgrade's gates (`observation.connectors.rules`); here they speak per connector and task.
"""

from __future__ import annotations

from collections.abc import Sequence

from eosctl.app import App
from eosctl.checks import codes
from eosctl.checks.group.rules import gate_finding
from eosctl.checks.rows import CONNECTORS_CHECK, ConnectorsData, ConnectorsSummary
from eosctl.connectors.look import unknown_connector
from eosctl.core.findings import INFO, Finding, severity_counts, worst_first
from eosctl.errors import UnreachableError
from eosctl.group.gather import NO_REST, NO_REST_HINT, no_answer, observe_workers
from eosctl.group.observation.rules import Observation, ObservedConnector
from eosctl.observation.connectors.rules import connector_findings, group_findings
from eosctl.observation.gather import observe_connectors
from eosctl.output.rows import finding_row, unseen_parts
from eosctl.report import Problem, Report, check_exit_code
from eosctl.upgrade import codes as gate_codes
from eosctl.upgrade.gates import evaluate_gates


def check_connectors(app: App, names: Sequence[str] = (), *, strict: bool = False, validate: bool = True) -> Report:
    """Report findings about source connectors (or `names`); exits 3 on an error, with `strict` also on a warning.

    Else 7 where something could not be seen.

    Raises NotFoundError for a name that no connector has, what `no_answer` makes when no worker reports connectors,
    and what `observe_workers` raises.
    """
    group = observe_workers(app)
    observation = observe_connectors(app, group, validate=validate)
    if observation.connectors is None:
        failures = [member.failure for member in group.members if member.failure is not None]
        hint = NO_REST_HINT if group.is_mirror_maker else None
        failures = failures or [UnreachableError(observation.why_unseen("connectors"), hint=hint)]
        raise no_answer("no worker reports the connectors", failures)
    chosen = _chosen(observation.connectors, names)
    more = _sinks(chosen) if names else group_findings(observation)
    findings = worst_first([*connector_findings(observation, chosen), *more, *_files(observation)])
    sources = [each for each in chosen if each.type == "source"]
    problems = [*_unread(observation), *([_as_written()] if group.is_mirror_maker else [])]
    unseen = unseen_parts(findings, problems)
    return Report(
        kind=CONNECTORS_CHECK,
        rows=[finding_row(each) for each in findings],
        summary=ConnectorsSummary(
            connectors=len(sources),
            tasks=sum(len(each.tasks()) for each in sources),
            findings=len(findings),
            unseen=len(unseen),
            counts=severity_counts(findings),
        ),
        data=ConnectorsData(connectors=[each.name for each in sources], unseen=unseen),
        target={"kafka_cluster_id": observation.kafka_cluster_id, "group_id": app.target.group_id},
        problems=problems,
        exit_code=check_exit_code(findings, problems, strict=strict),
    )


def _unread(observation: Observation) -> list[Problem]:
    """Return a problem if the config topic was not read, which alone has how many ids the next fencing round fences."""
    if observation.config_state is not None or not observation.sources():
        return []
    message = f"how many ids are recorded of each connector is not known: {observation.why_unseen('config topic')}"
    hint = "Give -b, and READ and DESCRIBE on the config topic (--config-topic)."
    return [Problem(codes.CONFIG_TOPIC_UNREAD, message, hint, unseen=True)]


def _as_written() -> Problem:
    message = f"no worker says what runs: each {NO_REST}; configs and states are those of its config and status topics"
    return Problem(codes.CONNECTORS_AS_WRITTEN, message, NO_REST_HINT)


def _chosen(connectors: Sequence[ObservedConnector], names: Sequence[str]) -> list[ObservedConnector]:
    by_name = {each.name: each for each in connectors}
    missing = sorted(set(names) - set(by_name))
    if missing:
        raise unknown_connector(f"there is no connector {', '.join(missing)}", missing[0], by_name)
    return [by_name[name] for name in dict.fromkeys(names)] if names else list(connectors)


def _files(observation: Observation) -> list[Finding]:
    """Return findings about workers with another topic in their file than the group's; any connector may run there."""
    gates = evaluate_gates(observation) if observation.files else ()
    subject = observation.group_id or "group"
    return [finding for gate in gates if gate.id == gate_codes.WORKER_FILES for finding in gate_finding(gate, subject)]


def _sinks(chosen: Sequence[ObservedConnector]) -> list[Finding]:
    """Return a finding for each named sink, so that it is not ignored in silence."""
    return [
        Finding(
            codes.NOT_A_SOURCE, INFO, each.name, f"{each.name} is a {each.type} connector: nothing to check", "None."
        )
        for each in chosen
        if each.type != "source"
    ]
