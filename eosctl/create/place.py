"""The plan to place a connector on a cluster: what is checked before, and the offsets that it is to find.

`connectors create` and `apply` place it on the command's cluster, `connectors move` on another one.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.connectors.dedicated import TOPIC_PROPERTY, OtherCluster, describe_unknown, servers_of
from eosctl.connectors.definition import ConnectorDefinition
from eosctl.connectors.look import RUNNING, describe_store, store_name, topic_of
from eosctl.connectors.validity import require_valid_config
from eosctl.core.allowances import NOTHING_WAIVED, Allowances, Waiver
from eosctl.core.clients.own_brokers import OwnBrokers, own_brokers
from eosctl.core.ids import stop_request
from eosctl.core.offsets.names import GLOBAL
from eosctl.core.offsets.records import OffsetKey, decode_key, is_nothing
from eosctl.core.offsets.views import Store, live
from eosctl.core.wording import counted, is_topic_name
from eosctl.core.workers.access import CONNECTOR_CONFIG
from eosctl.create import codes
from eosctl.create.given import GivenOffsets
from eosctl.create.looks import (
    Site,
    Twins,
    clashing_ids,
    find_twins,
    look_at_site,
    other_workers,
    require_free,
    require_plugin,
)
from eosctl.engine.planned import PlannedWrites
from eosctl.engine.stores import as_columns
from eosctl.errors import RefusedError
from eosctl.foreign import arguments, shell_word
from eosctl.offsets.edit.edit import plan_reset
from eosctl.offsets.files.importing import import_problems, plan_import
from eosctl.offsets.files.offsets_file import BODY
from eosctl.offsets.history.config_changes import ConfigEffect, compare_configs, starts_over
from eosctl.offsets.stores.gather import OffsetStores, gather_topics
from eosctl.offsets.stores.on_disk import spool_of, writing_to
from eosctl.offsets.stores.own import refuse_unfit_targets
from eosctl.offsets.switch.rights import rights_problems
from eosctl.offsets.write_rows import CREATE
from eosctl.offsets.writes import OffsetWritePlan, refuse_hidden, refuse_hidden_in_target, write_plan
from eosctl.report import Problem

_NEED = "Offsets of a large file need up to five times its size there."
_CHECKS_ASK = "The connector's own checks ask its source: see whether that can be reached from the worker. "


class ConnectorPlacement(Struct, frozen=True):
    """A connector that is to be on a cluster, in `state` in the end, with its offsets in `store`: `global` or a topic.

    `offsets` are the writes that give it the `given` ones; None without these. `left` counts the offsets of its name
    that are in the store already. `elsewhere`: the store is on Kafka brokers that the config names, and was not looked
    at. `effect` compares its config with the offsets that it is to have. `refusal` is that of a check which the user
    may waive.
    """

    definition: ConnectorDefinition
    state: str
    site: Site
    store: str
    given: GivenOffsets | None = None
    offsets: OffsetWritePlan | None = None
    left: int = 0
    elsewhere: bool = False
    effect: ConfigEffect | None = None
    allowances: Allowances = NOTHING_WAIVED
    problems: tuple[Problem, ...] = ()
    refusal: RefusedError | None = None

    @property
    def name(self) -> str:
        """The connector's name."""
        return self.definition.name


def plan_placement(
    app: App,
    definition: ConnectorDefinition,
    given: GivenOffsets | None = None,
    *,
    state: str | None = None,
    allowances: Allowances = NOTHING_WAIVED,
    ours: bool = False,
) -> ConnectorPlacement:
    """Check what a new connector needs on the cluster of `app`, and plan its offsets; write nothing.

    `ours`: an earlier run of the same work has begun, so that the connector and its offsets may be there. Raises
    RefusedError for a name that is taken, a sink, a config that Connect would reject, rights that are lacking, and
    hidden offsets; UnsupportedError below Kafka 3.7.
    """
    name = definition.name
    site = look_at_site(app, name)
    ours = ours and (name in site.connectors or name in site.configured)
    if ours:
        _require_same_config(site, definition)
    else:
        require_free(app.target.config_topic, site, name)
    store = _require_usable(app, site, definition, given)
    brokers = own_brokers(definition.config, here=servers_of(app))
    found = gather_topics(app, [app.target.offset_topic], if_there=[topic_of(app, store)] if brokers is None else [])
    left = [] if brokers is not None else _left(app, name, store, found, is_read=given is None)
    offsets = None if given is None else plan_given(app, name, store, given, found, allowances=allowances)
    keys = left if offsets is None else kept_keys(offsets)
    effect = compare_configs(None, definition.config, [key.partition for key in keys])
    twins = _twins(definition, keys, site, found)
    refusals = [
        _refuse_replacing(name, store, offsets, allowances=allowances),
        _refuse_twins(name, twins.certain, given, allowances),
        _refuse_starting_over(name, given, effect, allowances),
    ]
    fresh = starts_over(name, effect) if keys else None
    problems = [
        *(_of_start(name, store, left, given) if brokers is None else [_not_looked_at(name, brokers)]),
        *_of_global(app, name, store, found),
        *strimzi_problems(definition),
        *(() if given is None else given.problems),
        *(() if offsets is None else offsets.problems),
        *(() if fresh is None else [fresh.as_warning()]),
        *_of_twins(twins.doubtful),
        *other_workers(app, site, definition),
        *(clashing_ids(app, definition) if brokers is None else ()),
        *_rights(app, site, definition, brokers, store=store, made=bool(offsets and offsets.creates)),
    ]
    return ConnectorPlacement(
        definition=definition,
        state=state or definition.state or RUNNING,
        site=site,
        store=store,
        given=given,
        offsets=offsets,
        left=len(left),
        elsewhere=brokers is not None,
        effect=effect,
        allowances=allowances,
        problems=tuple(problems),
        refusal=next(filter(None, refusals), None),
    )


def _left(app: App, name: str, store: str, found: OffsetStores, *, is_read: bool) -> list[OffsetKey]:
    """Return the keys that have an offset under the name already; with `is_read`, refuse while some are hidden."""
    target = found.stores[topic_of(app, store)]
    if is_read:
        refuse_hidden(app, name, stores=[target])
    return live_keys(target.of(name), name)


def _rights(
    app: App, site: Site, definition: ConnectorDefinition, brokers: OwnBrokers | None, *, store: str, made: bool
) -> list[Problem]:
    """Return what is known of the connector's rights on its offsets topic, on the cluster where that is."""
    if brokers is not None and brokers.settings is None:
        return []
    where = app if brokers is None or brokers.settings is None else OtherCluster(brokers.settings).with_clients(app)
    worker = app.worker(site.url)
    return rights_problems(where, definition.name, worker, config=definition.config, target=store, made=made)


def _not_looked_at(name: str, brokers: OwnBrokers) -> Problem:
    message = f"{name} keeps its offsets on Kafka brokers that its config names ({brokers.servers})"
    return Problem(
        codes.START_NOT_KNOWN,
        f"{message}: whether some of its name are there, from which it would go on, was not looked at",
        codes.START_NOT_KNOWN.next,
    )


def _require_usable(app: App, site: Site, definition: ConnectorDefinition, given: GivenOffsets | None) -> str:
    """Return the store of the connector's offsets; raise RefusedError if its worker would not take the config."""
    worker = app.worker(site.url)
    require_plugin(worker, definition)
    store = _store_of(app, definition)
    _refuse_own_brokers(app, definition, given)
    app.target.connect.require_trust(worker.url, CONNECTOR_CONFIG)
    hint = f"{_CHECKS_ASK}Correct the config, and run again."
    require_valid_config(worker, definition.name, definition.config, hint=hint)
    return store


def _twins(definition: ConnectorDefinition, keys: Iterable[OffsetKey], site: Site, found: OffsetStores) -> Twins:
    """Find running connectors that read the same, as far as the global offsets topic and the configs show it."""
    others = {each: found.stores[found.global_topic].of(each) for each in site.connectors if each != definition.name}
    keys_of = {each: live_keys(theirs, each) for each, theirs in others.items()}
    return find_twins(definition, keys, site.connectors, keys_of)


def plan_given(
    app: App, name: str, store: str, given: GivenOffsets, found: OffsetStores, *, allowances: Allowances
) -> OffsetWritePlan:
    """Plan the writes after which `store` has the given offsets of the connector, and no others.

    Raises RefusedError for a topic that is not fit for offsets, and for offsets that an open transaction hides.
    """
    topic = topic_of(app, store)
    with app.topics() as topics:
        refuse_unfit_targets(app, topics, [topic])
    target = found.stores[topic]
    with writing_to(spool_of(app), need=_NEED) as spool:
        planned = plan_import(given.file, as_columns(target), spool)
    present = target.of(name)
    kept = set(planned.keys())
    refuse_hidden_in_target(app, name, present, written=kept)  # a killed run may have left some
    others = [key for key in live_keys(present, name) if key.raw not in kept]
    writes = planned.writes.followed_by(PlannedWrites.of(list(plan_reset({GLOBAL: present}, others))))
    plan = write_plan(CREATE, writes, found, allowances=allowances)
    return replace(plan, problems=(*plan.problems, *import_problems(given.file, planned), *_guessed(given, plan)))


def _guessed(given: GivenOffsets, plan: OffsetWritePlan) -> Iterable[Problem]:
    """Warn of keys whose spelling is that of Connect's REST interface, and may not be the connector's."""
    if given.file.places != BODY:
        return
    several = [key for key in kept_keys(plan) if len(key.partition or {}) > 1]
    if several:
        message = f"{given.origin} does not say how {counted(len(several), 'key')} of several members are spelled"
        yield Problem(codes.SPELLING_GUESSED, message, codes.SPELLING_GUESSED.next)


def live_keys(store: Store, name: str) -> list[OffsetKey]:
    """Return the keys of a connector that have an offset in the store."""
    return [key for key in store.connectors.get(name, ()) if live(store.records.get(key.raw)) is not None]


def kept_keys(plan: OffsetWritePlan) -> list[OffsetKey]:
    """Return the keys that have an offset after the writes."""
    raws = (
        raw
        for table in plan.writes.tables()
        for raw, after in zip(table["key"].to_pylist(), table["after"].to_pylist(), strict=True)
        if after is not None
    )
    return [key for key in map(decode_key, dict.fromkeys(raws)) if isinstance(key, OffsetKey)]


def _require_same_config(site: Site, definition: ConnectorDefinition) -> None:
    """Raise RefusedError where the connector of an earlier run has got another config since."""
    entry = site.connectors.get(definition.name)
    if entry is not None and dict(entry.config) != dict(definition.config):
        raise RefusedError(
            f"connector {definition.name} exists, and has another config than {definition.source}; nothing was written",
            hint=f"`eosctl connectors apply` changes it; `eosctl connectors trace {arguments(definition.name)}` shows "
            "its state.",
        )


def _store_of(app: App, definition: ConnectorDefinition) -> str:
    """Return `global` or the connector's own topic; raise RefusedError where only its worker knows its name."""
    own = definition.config.get(TOPIC_PROPERTY)
    if own and not is_topic_name(own):
        raise RefusedError(
            f"{describe_unknown(definition.name, own)}, so where it keeps its offsets is not known",
            hint=f"Put the topic's name itself into {TOPIC_PROPERTY}; it is no secret.",
        )
    return store_name(app, own)


def _refuse_own_brokers(app: App, definition: ConnectorDefinition, given: GivenOffsets | None) -> None:
    """Raise RefusedError where the offsets belong to Kafka brokers that the config names."""
    brokers = own_brokers(definition.config, here=servers_of(app))
    if brokers is not None and given is not None:
        raise RefusedError(
            f"the config of {definition.name} names Kafka brokers of its own ({brokers.servers}), where its offsets "
            "are; nothing was written",
            hint="Create it with --stopped and without --offsets; then `eosctl offsets import --store TOPIC@PROFILE` "
            "with a profile that leads there, and `eosctl connectors resume`.",
        )


def _refuse_replacing(
    name: str, store: str, offsets: OffsetWritePlan | None, *, allowances: Allowances
) -> RefusedError | None:
    """Return the refusal to replace offsets of that name, which a deleted connector left or tasks have committed since.

    An earlier run of the same work replaces nothing: what it wrote has the given values already.
    """
    if offsets is None or allowances.overwrite_offsets:
        return None
    there = (before for table in offsets.sends().tables() for before in table["before"].to_pylist())
    replaced = sum(not is_nothing(before) for before in there)
    if not replaced:
        return None
    return RefusedError(
        f"{describe_store(store)} has {counted(replaced, 'offset')} of {name} already, with other values than those "
        "that are given; nothing was written",
        hint=f"`eosctl offsets list --connector {shell_word(name)}` shows them: without --offsets the connector goes "
        f"on from there. {Waiver.OVERWRITE_OFFSETS} replaces them, and keeps a backup.",
    )


def _refuse_twins(
    name: str, twins: tuple[str, ...], given: GivenOffsets | None, allowances: Allowances
) -> RefusedError | None:
    """Return the refusal of a second connector on source partitions that a running one reads."""
    if given is not None and (running := refuse_running_origin(name, given, allowances)):
        return running
    if not twins or allowances.read_twice:
        return None
    return RefusedError(
        f"{', '.join(twins)} is not stopped, and reads source partitions that {name} would read; nothing was written",
        hint=f"Stop it first (`eosctl connectors stop {arguments(twins[0])}`). {Waiver.READ_TWICE} delivers each "
        "record twice.",
    )


def refuse_running_origin(name: str, given: GivenOffsets, allowances: Allowances) -> RefusedError | None:
    """Return the refusal of the offsets of a connector that runs."""
    if given.running is None or allowances.read_twice:
        return None
    where = "" if given.profile is None else f" at profile {given.profile}"
    return RefusedError(
        f"{given.running}{where} is not stopped: its offsets move on, and {name} would read the same; {name} was not "
        "started",
        hint=f"Stop it ({stop_request(given.connector, profile=given.profile)}), then run again. "
        f"{Waiver.READ_TWICE} reads the source twice.",
    )


def _refuse_starting_over(
    name: str, given: GivenOffsets | None, effect: ConfigEffect, allowances: Allowances
) -> RefusedError | None:
    """Return the refusal of offsets that are not those of the config: it would start over all the same."""
    fresh = starts_over(name, effect)
    if given is None or fresh is None or allowances.read_again:
        return None
    return RefusedError(
        f"{fresh.message}; nothing was written",
        hint=f"The offsets of {given.origin} are of other source partitions: compare them with the config. "
        f"{Waiver.READ_AGAIN} creates it, and it reads those from the beginning.",
    )


def _of_start(name: str, store: str, left: list[OffsetKey], given: GivenOffsets | None) -> Iterable[Problem]:
    """Say where the connector starts, if no offsets are given."""
    if given is not None:
        return
    if left:
        message = f"{name} goes on from {counted(len(left), 'offset')} of its name in {describe_store(store)}"
        hint = f"For a new beginning: `eosctl offsets reset --connector {shell_word(name)} --all-partitions` first."
        yield Problem(codes.GOES_ON_FROM_LEFT, f"{message}, as a deleted connector left them", hint)
    else:
        yield Problem(
            codes.STARTS_AT_BEGINNING,
            f"{name} has no offsets: it starts at the beginning, or where its own settings say",
            codes.STARTS_AT_BEGINNING.next,
        )


def _of_global(app: App, name: str, store: str, found: OffsetStores) -> Iterable[Problem]:
    if store == GLOBAL:
        return
    others = live_keys(found.stores[app.target.offset_topic].of(name), name)
    if others:
        message = f"the global offsets topic has {counted(len(others), 'offset')} of {name}, too, which it won't read"
        yield Problem(codes.OTHER_OFFSETS_IN_GLOBAL, message, codes.OTHER_OFFSETS_IN_GLOBAL.next)


def strimzi_problems(definition: ConnectorDefinition) -> Iterable[Problem]:
    """Warn where Strimzi's operator may keep the connector as its own resource says."""
    if definition.cluster is not None:
        message = f"{definition.source} is a KafkaConnector of the cluster {definition.cluster}, which Strimzi may keep"
        yield Problem(codes.KEPT_BY_OPERATOR, message, codes.KEPT_BY_OPERATOR.next)


def _of_twins(names: tuple[str, ...]) -> Iterable[Problem]:
    if names:
        message = (
            f"{', '.join(names)} runs here, and has source partitions of these names, on other servers by its config"
        )
        yield Problem(codes.READS_TWICE, message, codes.READS_TWICE.next)
