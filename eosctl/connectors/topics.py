"""The topics that connectors write to: written ones by workers' reports, others by configs. Reads only.

Where a worker does not track them (`topic.tracking.enable=false`) or can't be reached, only the configs are left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from eosctl.app import App
from eosctl.connectors import codes
from eosctl.connectors.topic_rules import ConfiguredTopics, configured_topics
from eosctl.errors import EosctlError
from eosctl.group.gather import discover_urls, in_turn
from eosctl.machine.side_by_side import side_by_side
from eosctl.report import Problem

_PARALLEL_QUESTIONS = 8


class ConnectorTopics(Struct, frozen=True):
    """`written` are certain; `likely` are others that the config names, `TOPIC*` is a prefix.

    `own_reads` are read by consumers of the connector's own, not by Connect's.
    """

    written: tuple[str, ...] = ()
    likely: tuple[str, ...] = ()
    own_reads: tuple[str, ...] = ()


class FoundTopics(Struct, frozen=True):
    """Connector -> its topics; the unknown ones as problems, and the connectors that no worker reported about."""

    of: Mapping[str, ConnectorTopics] = {}
    problems: tuple[Problem, ...] = ()
    untold: tuple[str, ...] = ()


def find_topics(app: App, configs: Mapping[str, Mapping[str, object]]) -> FoundTopics:
    """Find the topics of these connectors, of workers by REST and of configs, which may be empty; decide what is
    certain.
    """
    written, why_not = _ask_workers(app, list(configs)) if configs else ({}, "")
    configured = {name: configured_topics(config) for name, config in configs.items()}
    found = {name: _joined(written.get(name), configured[name]) for name in configs}
    lacking = [name for name, topics in found.items() if not (topics.written or topics.likely)]
    guessed = [name for name in configs if name not in written and name not in lacking]
    problems = []
    if lacking:
        reason = why_not or "they have written nothing yet, and their configs name none"
        problems.append(_unknown(f"the topics that {', '.join(lacking)} write to are not known ({reason})", "them"))
    if guessed:
        message = (
            f"what {', '.join(guessed)} have written is not known ({why_not}): rights are for what their configs say"
        )
        problems.append(_unknown(message, "others"))
    return FoundTopics(found, tuple(problems), tuple(name for name in configs if name not in written))


def _joined(reported: Sequence[str] | None, configured: ConfiguredTopics) -> ConnectorTopics:
    """Join written topics, which are certain, with those of the config, which are unless transforms may reroute
    records.
    """
    certain = [] if configured.rerouted else [topic for topic in configured.written if not topic.endswith("*")]
    written = dict.fromkeys([*(reported or ()), *certain])
    known = configured.rerouted and reported  # what came out of the transforms, and what went in is no topic
    likely = [
        topic for topic in (*(() if known else configured.written), *configured.own_writes) if topic not in written
    ]
    return ConnectorTopics(tuple(written), tuple(likely), configured.own_reads)


def _ask_workers(app: App, connectors: Sequence[str]) -> tuple[Mapping[str, Sequence[str]], str]:
    """Ask for the topics that each connector has written to, at the first worker that has them; else return why not."""
    try:
        urls = discover_urls(app)
    except EosctlError as exc:
        return {}, exc.message
    failures: list[EosctlError] = []
    for _url, worker in in_turn(app, urls):
        try:
            topics = [worker.topics(connectors[0])]  # a worker that does not report is asked once
            topics += side_by_side(worker.topics, connectors[1:], most=_PARALLEL_QUESTIONS)
            return dict(zip(connectors, topics, strict=True)), ""
        except EosctlError as exc:
            failures.append(exc)
    return {}, "; ".join(each.message for each in failures) or "the group has no member"


def _unknown(message: str, what: str) -> Problem:
    hint = f"Name {what} with --output-topic NAME; NAME* is a prefix."
    return Problem(codes.OUTPUT_TOPICS_UNKNOWN, message, hint=hint, unseen=True)
