"""Transactions, of whomever, that have been open for long on topics to which the group's connectors write. Reads only.

Starts from what coordinators list as open for long, which are few on any cluster: no topic is looked at before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from eosctl.core.findings import Finding
from eosctl.core.own_brokers import CLUSTER_PROPERTY
from eosctl.core.records import Bounds
from eosctl.core.standstill import LEAST_LONG_MS, HeldTopic, held_topics_finding, is_open_long
from eosctl.core.transactions import TransactionDescription
from eosctl.core.upgrade_observation import Observation
from eosctl.ops.app import App
from eosctl.ops.connector_topics import find_topics
from eosctl.ops.ports import TopicStore
from eosctl.ops.txn import list_open_longer_than
from eosctl.ops.txn_report import missing_ids_problems
from eosctl.report import Problem

_PATIENCE_S = 10.0
"""Coordinators that have no leader are waited for by other checks; half of this is enough here."""


def find_held_topics(app: App, seen: Observation) -> tuple[list[Finding], list[Problem]]:
    """One finding for each such transaction, and what could not be known.

    Transactions of the group's RUNNING tasks are judged by `long_transactions`, offsets topics by `offsets lint`.
    """
    sources = {each.name: each.config for each in seen.sources() if CLUSTER_PROPERTY not in each.config}
    if not sources:
        return [], []
    with replace(app, deadline=app.deadline.half(at_most_s=_PATIENCE_S)).transactions() as admin:
        listings = list_open_longer_than(app, admin, LEAST_LONG_MS)
        ids = [each.transactional_id for each in listings.found if each.transactional_id not in seen.ongoing]
        described = admin.describe_transactions(ids) if ids else {}
    problems = missing_ids_problems(listings)
    now_ms = app.clock.now_ms()
    known = (each for each in described.values() if isinstance(each, TransactionDescription))
    holders = [each for each in known if is_open_long(each, now_ms)]
    if not holders:
        return [], problems
    topics = find_topics(app, sources)
    writers = _writers({name: (*each.written, *each.likely) for name, each in topics.of.items()}, holders)
    for internal in seen.topics or ():
        writers.pop(internal, None)
    with app.topics() as store:
        bounds = {topic: _held_bounds(store, topic) for topic in writers}
    found = []
    for holder in holders:
        held = [HeldTopic(topic, who, there) for topic, who in writers.items() if (there := _of(holder, topic, bounds))]
        if held:
            found.append(held_topics_finding(holder, held, now_ms=now_ms))
    return found, problems


def _writers(
    topics: Mapping[str, Sequence[str]], holders: Sequence[TransactionDescription]
) -> dict[str, tuple[str, ...]]:
    """The topics that are part of these transactions -> the connectors that write to them; `TOPIC*` is a prefix."""
    open_ones = sorted({topic for holder in holders for topic, _partition in holder.partitions})
    found = {}
    for topic in open_ones:
        who = [name for name, names in topics.items() if any(_is_named(topic, each) for each in names)]
        if who:
            found[topic] = tuple(sorted(who))
    return found


def _is_named(topic: str, name: str) -> bool:
    return topic.startswith(name[:-1]) if name.endswith("*") else topic == name


def _held_bounds(store: TopicStore, topic: str) -> list[Bounds]:
    """The partitions whose last stable offset stays behind their end; one without a leader is told elsewhere."""
    return [bound for bound in store.known_bounds(topic).known if bound.lso < bound.end]


def _of(holder: TransactionDescription, topic: str, bounds: Mapping[str, Sequence[Bounds]]) -> list[Bounds]:
    """Those that are part of the transaction."""
    return [bound for bound in bounds[topic] if (topic, bound.partition) in holder.partitions]
