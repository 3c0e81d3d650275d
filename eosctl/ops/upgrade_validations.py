"""What connectors themselves say of exactly-once: each source connector's config, validated by a worker.

A validation may log in to the connector's database and take seconds: they are made side by side, and after everything
that is told faster.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from eosctl.core.upgrade_observation import VALIDATION, Observation, ObservedConnector
from eosctl.errors import EosctlError
from eosctl.ops.app import App
from eosctl.ops.ports import ConnectWorker

SUPPORT_PROPERTY = "exactly.once.support"
BOUNDARY_PROPERTY = "transaction.boundary"
PARALLEL_VALIDATIONS = 8
_Answers = Mapping[str, tuple[str, ...]]


def with_validations(app: App, observation: Observation) -> Observation:
    """Adds what the first worker that answers objects to; half of the time that is left is for what comes after."""
    url = next(iter(observation.cluster_ids), None)
    sources = observation.sources()
    if url is None or observation.connectors is None or not sources:
        return observation
    worker = replace(app, deadline=app.deadline.half()).worker(url)
    pool = ThreadPoolExecutor(PARALLEL_VALIDATIONS)
    try:
        asked = {each.name: pool.submit(_validate, worker, each.config) for each in sources}
        answers = {name: future.result() for name, future in asked.items()}
    finally:
        pool.shutdown(cancel_futures=True)
    connectors = tuple(_with_answers(each, answers.get(each.name)) for each in observation.connectors)
    return replace(observation, connectors=connectors)


def without_validations(observation: Observation) -> Observation:
    """The same, where no connector was to be asked."""
    return observation.without((VALIDATION,), "no connector was validated (--no-validate)")


def _with_answers(connector: ObservedConnector, answers: _Answers | None) -> ObservedConnector:
    if answers is None:
        return connector
    return replace(
        connector,
        support_errors=answers.get(SUPPORT_PROPERTY),
        boundary_errors=answers.get(BOUNDARY_PROPERTY, ()),
    )


def _validate(worker: ConnectWorker, config: Mapping[str, str]) -> _Answers | None:
    """Property -> what a worker objects to if the connector required exactly-once; None when it can't be asked."""
    try:
        answer = worker.validate(config["connector.class"], {**config, SUPPORT_PROPERTY: "required"})
    except (EosctlError, KeyError):
        return None
    configs = answer.get("configs")
    values = [_mapping(_mapping(each).get("value")) for each in (configs if isinstance(configs, list) else [])]
    return {str(value.get("name")): _texts(value.get("errors")) for value in values}


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _texts(errors: object) -> tuple[str, ...]:
    return tuple(str(text) for text in (errors if isinstance(errors, list) else []))
