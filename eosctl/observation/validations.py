"""Validates each source connector's config on a worker, to learn what the connector itself declares of exactly-once.

A validation may log in to the connector's database and take seconds: they run in parallel, and after all faster
requests.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.configs.records import OFFSETS_TOPIC
from eosctl.core.workers.connector_entry import mapping_of
from eosctl.errors import EosctlError
from eosctl.group.gather import NO_REST
from eosctl.group.observation.rules import VALIDATION, Observation, ObservedConnector
from eosctl.machine.side_by_side import side_by_side
from eosctl.ports import ConnectWorker

SUPPORT_PROPERTY = "exactly.once.support"
BOUNDARY_PROPERTY = "transaction.boundary"
PARALLEL_VALIDATIONS = 8
_OFFSETS_TOPIC_DOC = "The name of a separate offsets topic"  # SourceConnectorConfig, 3.3 to 4.3


class _Answers(Struct, frozen=True):
    """The objections by property; `redefines_offsets_topic` as in ObservedConnector."""

    errors: Mapping[str, tuple[str, ...]]
    redefines_offsets_topic: bool


def with_validations(app: App, observation: Observation) -> Observation:
    """Add the objections of the first worker that answers; leave half of the remaining time for later steps.

    A worker that was not named gets no more of the connectors' configs than it reports itself.
    """
    if observation.mirror_maker:
        return observation.without((VALIDATION,), f"each {NO_REST}")
    trusted = [url for url in observation.cluster_ids if app.target.trusts(url)]
    url, is_trusted = next(iter([*trusted, *observation.cluster_ids]), None), bool(trusted)
    sources = observation.sources()
    if url is None or observation.connectors is None or not sources:
        return observation
    worker = replace(app, deadline=app.deadline.half()).worker(url)
    configs = {each.name: each.config for each in sources} if is_trusted else _own_configs(worker)
    results = side_by_side(
        lambda each: _validate(worker, configs.get(each.name, {})), sources, most=PARALLEL_VALIDATIONS
    )
    answers = {each.name: answer for each, answer in zip(sources, results, strict=True)}
    connectors = tuple(_with_answers(each, answers.get(each.name)) for each in observation.connectors)
    return replace(observation, connectors=connectors)


def _own_configs(worker: ConnectWorker) -> Mapping[str, Mapping[str, str]]:
    """Return the configs of all connectors as this worker reports them; none if it does not."""
    try:
        return {name: entry.config for name, entry in worker.connectors().items()}
    except EosctlError:
        return {}


def without_validations(observation: Observation) -> Observation:
    """Mark the validation as unseen, as it was not requested."""
    return observation.without((VALIDATION,), "no connector was validated (--no-validate)")


def _with_answers(connector: ObservedConnector, answers: _Answers | None) -> ObservedConnector:
    if answers is None:
        return connector
    return replace(
        connector,
        support_errors=answers.errors.get(SUPPORT_PROPERTY),
        boundary_errors=answers.errors.get(BOUNDARY_PROPERTY, ()),
        redefines_offsets_topic=answers.redefines_offsets_topic,
    )


def _validate(worker: ConnectWorker, config: Mapping[str, str]) -> _Answers | None:
    """Return a worker's objections if the connector required exactly-once; None if it can't be asked."""
    try:
        answer = worker.validate(config["connector.class"], {**config, SUPPORT_PROPERTY: "required"})
    except (EosctlError, KeyError):
        return None
    configs = answer.get("configs")
    entries = [mapping_of(each) for each in (configs if isinstance(configs, list) else [])]
    values = [mapping_of(each.get("value")) for each in entries]
    errors = {str(value.get("name")): _texts(value.get("errors")) for value in values}
    return _Answers(errors, redefines_offsets_topic=any(map(_redefines, entries)))


def _redefines(entry: Mapping[str, object]) -> bool:
    """Decide whether the connector defines an `offsets.storage.topic` of its own, which replaces Connect's."""
    definition = mapping_of(entry.get("definition"))
    documentation = definition.get("documentation")
    of_another = isinstance(documentation, str) and not documentation.startswith(_OFFSETS_TOPIC_DOC)
    return definition.get("name") == OFFSETS_TOPIC and of_another


def _texts(errors: object) -> tuple[str, ...]:
    return tuple(str(text) for text in (errors if isinstance(errors, list) else []))
