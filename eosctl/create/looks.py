"""What a cluster and its group have to say before a connector is placed there; reads only."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.connectors.definition import ConnectorDefinition
from eosctl.connectors.look import STOPPED, ReachedWorker, reach_worker, require_stable_group
from eosctl.core.configs.records import PROPERTY, names_one_of
from eosctl.core.ids import connector_path, task_transactional_ids
from eosctl.core.java.properties import whole_number
from eosctl.core.offsets.records import OffsetKey
from eosctl.core.versions import CREATED_STOPPED_SINCE, is_older, shown_version
from eosctl.core.wording import alike_first, counted
from eosctl.core.workers.connector_entry import ConnectorEntry, plugin_type
from eosctl.create import codes
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError, InterruptedByUserError, RefusedError, UnsupportedError
from eosctl.group.gather import read_group, urls_of
from eosctl.group.modes import WORKER_PATIENCE_S, refuse_unreachable
from eosctl.group.observation.rules import rivals
from eosctl.group.topics import find_config_topic
from eosctl.machine.side_by_side import side_by_side
from eosctl.observation.transactions import find_rival_groups
from eosctl.offsets.history.config_changes import partitions_of
from eosctl.ports import ConnectWorker
from eosctl.report import Problem

_MOST_NAMED = 3
_AT_ONCE = 8
_MOST_TASKS = 100
"""The most transactional ids that are looked at for another group's."""


class Site(Struct, frozen=True):
    """The worker to ask, its version, the Kafka cluster, and the connectors that the group shows.

    `configured` are the names that have a config in the group's config topic.
    """

    url: str
    shown_url: str
    version: str
    cluster_id: str
    connectors: Mapping[str, ConnectorEntry]
    configured: frozenset[str] = frozenset()


def look_at_site(app: App, name: str) -> Site:
    """Find a worker of the stable group through which a connector of that name can be created STOPPED.

    Raises RefusedError in a rebalance and for a worker of another group, UnsupportedError below Kafka 3.7.
    """
    cluster_id = require_stable_group(app)
    worker = reach_worker(app, cluster_id)
    if is_older(worker.version, CREATED_STOPPED_SINCE):
        raise UnsupportedError(
            f"the worker at {worker.shown_url} runs {shown_version(worker.version)}: a connector can be created "
            "STOPPED from Kafka 3.7 on (KIP-980)",
            hint="By hand: write its offsets with `eosctl offsets import` while no connector has that name, then "
            f"PUT {connector_path(name)}/config. It runs at once.",
        )
    refuse_unreachable(name, app.worker(worker.url))
    configured = _configured(app, worker)
    return Site(worker.url, worker.shown_url, worker.version, cluster_id, worker.connectors, configured)


def _configured(app: App, worker: ReachedWorker) -> frozenset[str]:
    """Return the connectors in the config topic; raise RefusedError unless it can be that of the worker's group."""
    with app.topics() as topics:
        found = find_config_topic(app, topics)
    of_topic = {} if found is None else found.state.connectors
    known = frozenset(name for name, each in of_topic.items() if each.config is not None)
    others = worker.connectors.keys() - known or (known and not worker.connectors)
    wrong = "does not exist" if found is None else "has other connectors" if others else ""
    if wrong:
        raise RefusedError(
            f"topic {app.target.config_topic} {wrong}: the worker at {worker.shown_url} is of another group, or one "
            "was just created; nothing was written",
            hint="Name the config and offsets topics of the worker's group: --config-topic, --offset-topic.",
        )
    return known


def require_plugin(worker: ConnectWorker, definition: ConnectorDefinition) -> None:
    """Raise RefusedError unless the worker has the connector's plugin, and it is a source."""
    listed = {str(each.get("class")): str(each.get("type")) for each in worker.plugins()}
    wanted = definition.config[PROPERTY].strip()
    there = [name for name in listed if names_one_of(definition.config, [name])]
    if not there:
        alike = ", ".join(alike_first(wanted, listed)[:_MOST_NAMED])
        raise RefusedError(
            f"the worker at {worker.url} has no plugin {wanted}; nothing was written",
            hint=f"It has {alike or 'none'}. Install the plugin in its plugin.path, and restart the worker.",
        )
    if plugin_type(definition.config, listed[there[0]]) == "sink":
        raise RefusedError(
            f"{definition.name} is a sink connector: its offsets are those of a consumer group",
            hint=f"PUT {connector_path(definition.name)}/config creates or changes it; nothing here would help.",
        )


def other_workers(app: App, site: Site, definition: ConnectorDefinition) -> list[Problem]:
    """Warn of members that lack the plugin or could not be asked; raise UnsupportedError for one that is too old.

    The leader creates the connector, whichever worker is asked, and any member may get its tasks.
    """
    group, _cluster_id = read_group(app)
    urls = [url for url in urls_of(group) if url.rstrip("/") != site.shown_url.rstrip("/")]
    patient = replace(app, deadline=Deadline.after(min(WORKER_PATIENCE_S, app.deadline.remaining_s() / 4), app.clock))

    def ask(url: str) -> tuple[str, bool] | None:
        try:
            worker = patient.worker(url)
            classes = [str(each.get("class")) for each in worker.plugins()]
            return worker.root()["version"], names_one_of(definition.config, classes)
        except InterruptedByUserError:
            raise
        except EosctlError:
            return None

    answers = dict(zip(urls, side_by_side(ask, urls, most=_AT_ONCE), strict=True))
    for url, answer in answers.items():
        if answer is not None and is_older(answer[0], CREATED_STOPPED_SINCE):
            raise UnsupportedError(
                f"the worker at {url} runs {shown_version(answer[0])}, and may lead the group: a connector can be "
                "created STOPPED from Kafka 3.7 on (KIP-980)",
                hint="Upgrade all workers first.",
            )
    lacking = [url for url, answer in answers.items() if answer is not None and not answer[1]]
    silent = [url for url, answer in answers.items() if answer is None]
    problems = []
    if lacking:
        message = f"{_named(lacking)} {'has' if len(lacking) == 1 else 'have'} no {definition.config[PROPERTY]}"
        problems.append(Problem(codes.WORKER_LACKS_PLUGIN, message, codes.WORKER_LACKS_PLUGIN.next))
    if silent:
        message = f"whether {_named(silent)} can run it is not known: no answer from here"
        problems.append(Problem(codes.WORKERS_NOT_ASKED, message, codes.WORKERS_NOT_ASKED.next, unseen=True))
    return problems


def _named(urls: Collection[str]) -> str:
    names = sorted(urls)
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {counted(more, 'more worker')}" if more > 0 else "")


def clashing_ids(app: App, definition: ConnectorDefinition) -> list[Problem]:
    """Warn of other Connect groups whose tasks have, or may have, the transactional ids of the new one's."""
    tasks = min(whole_number(definition.config.get("tasks.max", "1")) or 1, _MOST_TASKS)
    group_id = app.target.require_group_id()
    ids = task_transactional_ids(group_id, definition.name, tasks)
    with app.transactions() as admin:
        others, _hidden = find_rival_groups(admin, group_id, ids)
    found = {str(reading): certain for each in ids for reading, certain in rivals(each, group_id, others)}
    if not found:
        return []
    first, certain = next(iter(found.items()))
    verb = "has" if certain else "may have"
    message = f"{first} {verb} the transactional id of a task of {definition.name}: each fences the other"
    return [Problem(codes.IDS_CLASH, message, codes.IDS_CLASH.next)]


_WHERE = re.compile(r"(?:.*\.)?(?:url|uri|hostname|hosts?|port|dbname|connection\.string|bootstrap\.servers)")
"""Settings that say which server a source is on: source partitions do not name it."""
_OF_CLIENTS = ("producer.", "consumer.", "admin.")


class Twins(Struct, frozen=True):
    """Running connectors of the same class that have source partitions of the new one.

    Those in `certain` name the same servers; `doubtful` name others, so that the sources may be different ones.
    """

    certain: tuple[str, ...] = ()
    doubtful: tuple[str, ...] = ()


def find_twins(
    definition: ConnectorDefinition,
    keys: Iterable[OffsetKey],
    others: Mapping[str, ConnectorEntry],
    keys_of: Mapping[str, Iterable[OffsetKey]],
) -> Twins:
    """Compare the source partitions of the new connector, by its offsets and its config, with those of others.

    `keys_of` are the keys of the others, as far as they are known.
    """
    alike = {
        name: entry
        for name, entry in others.items()
        if name != definition.name and entry.state != STOPPED and _are_one_class(definition.config, entry.config)
    }
    mine = set(map(_of_nobody, keys)) if alike else set()
    named = partitions_of(definition.config).named
    expected = () if named is None else named.expected
    certain, doubtful = list[str](), list[str]()
    for name, entry in alike.items():
        there = partitions_of(entry.config).named
        planned = [OffsetKey(b"", "", dict(each.partition)) for each in (() if there is None else there.expected)]
        theirs = [*keys_of.get(name, ()), *planned]
        if any(
            _of_nobody(each) in mine or any(one.is_same(each.partition or {}) for one in expected) for each in theirs
        ):
            (certain if _where(entry.config) == _where(definition.config) else doubtful).append(name)
    return Twins(tuple(sorted(certain)), tuple(sorted(doubtful)))


def _of_nobody(key: OffsetKey) -> str:
    """Return what is equal for the same source partition of any connector."""
    return replace(key, connector="", partition=key.partition or {}).identity


def _are_one_class(config: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Decide whether two configs name one class; one may have a short name of it."""
    return any(names_one_of(one, [two.get(PROPERTY, "")]) for one, two in ((config, other), (other, config)))


def _where(config: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value for name, value in config.items() if _WHERE.fullmatch(name) and not name.startswith(_OF_CLIENTS)
    }


def require_free(config_topic: str, site: Site, name: str) -> None:
    """Raise RefusedError where a connector of that name exists."""
    entry = site.connectors.get(name)
    if entry is not None:
        raise RefusedError(
            f"connector {name} exists, and is {entry.state}; nothing was written",
            hint="`eosctl connectors apply` changes its config; `eosctl connectors trace` shows why it failed.",
        )
    if name in site.configured:
        raise RefusedError(
            f"topic {config_topic} has a config of {name}, and no worker shows its state yet; nothing was written",
            hint="It was just created. Run again in some seconds.",
        )
