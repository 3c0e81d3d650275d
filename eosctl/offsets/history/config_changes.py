"""What a config, or the change of one, means for a connector's source partitions and their offsets. Pure.

The offset of a source partition counts for as long as the config names that source partition. What the config names
anew has no offset: the connector starts over there. An unknown class, and a value that only a worker can resolve, leave
it unknown, unless all that changes are settings of Connect itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum, unique

from msgspec import Struct
from msgspec.structs import replace

from eosctl.core.configs.records import OFFSETS_TOPIC, PROPERTY, pruned_class
from eosctl.core.offsets.records import json_text
from eosctl.core.wording import counted
from eosctl.offsets.codes import STARTS_OVER
from eosctl.offsets.history.config_reader import (
    Belongs,
    ExpectedPartition,
    Meaning,
    NamedPartitions,
    NotKnownError,
    Partition,
    Reader,
    address,
)
from eosctl.offsets.history.sources import KnownSource, source_of_class
from eosctl.report import Problem

Config = Mapping[str, str | None]

OWN_BROKERS = ("producer.override.bootstrap.servers", "consumer.override.bootstrap.servers")
"""With exactly-once, the offsets go to the brokers of the connector's producer, and with a topic of the connector's own
they are read at those of its consumer (`Worker.exactlyOnceSourceOffsetsConsumerConfigs`, Kafka 3.3.2 to 4.4.0)."""
_MOST_SHOWN = 3
_OF_STORE = (OFFSETS_TOPIC, *OWN_BROKERS)
_ADDRESSES = ("connection.url", "connection.uri", "mongodb.connection.string")
_TASKS, _VERSION = "tasks.max", "connector.plugin.version"
_CONNECTS_OWN = frozenset(
    {
        "name", _TASKS, "tasks.max.enforce", "config.action.reload", "key.converter", "value.converter",
        "header.converter", "transforms", "predicates", "exactly.once.support", "transaction.boundary",
        "transaction.boundary.interval.ms", "errors.retry.timeout", "errors.retry.delay.max.ms", "errors.tolerance",
        "errors.log.enable", "errors.log.include.messages",
    }
)  # fmt: skip
_CONNECTS_PREFIXES = (
    "key.converter.", "value.converter.", "header.converter.", "transforms.", "predicates.", "topic.creation.",
    "errors.deadletterqueue.", "producer.override.", "consumer.override.", "admin.override.",
)  # fmt: skip
"""The settings of ConnectorConfig, SourceConnectorConfig and TopicCreationConfig (javap, connect-runtime of 3.3.2,
4.3.1 and 4.4.0). Source offsets are written by a converter of the worker's own, before and beside transformations."""


def is_connects_own(name: str) -> bool:
    """Decide whether a setting is one of Connect itself, and names neither source partitions nor where offsets are."""
    return name not in _OF_STORE and (name in _CONNECTS_OWN or name.startswith(_CONNECTS_PREFIXES))


class ConfigPartitions(Struct, frozen=True):
    """The source partitions of a config, as far as it names them; `unknown` says why not, if it does not.

    `read` are the properties that name them, and `context` those of which a part may follow in a way that is not known.
    """

    source: KnownSource | None
    named: NamedPartitions | None
    unknown: str | None = None
    read: Mapping[str, str] = {}
    context: Mapping[str, str] = {}
    __repr__ = object.__repr__  # an address may have a password in it

    def belongs(self, partition: Partition | None) -> Belongs:
        """Decide whether a source partition can be one of the config's."""
        if self.named is None:
            return Belongs.UNKNOWN
        return Belongs.NO if partition is None else self.named.belongs(partition)

    @property
    def expected(self) -> tuple[ExpectedPartition, ...]:
        """The source partitions that follow from the config; there may be others, which only the source names."""
        return () if self.named is None else self.named.expected

    def without_offset(self, present: Iterable[Partition | None]) -> list[ExpectedPartition]:
        """Return those that follow from the config and have no offset among `present`: there it starts over."""
        seen = (each for each in present if each is not None)
        return [] if self.named is None else self.named.missing(seen)


def partitions_of(config: Config) -> ConfigPartitions:
    """Return what a config says of its source partitions."""
    source = source_of_class(config)
    if source is None:
        name = config.get(PROPERTY)
        return ConfigPartitions(
            None, None, f"what {name} names is not known" if name else f"the config has no {PROPERTY}"
        )
    reader = Reader(config)
    try:
        named = source.of_config.read(reader)
    except NotKnownError as exc:
        return ConfigPartitions(source, None, str(exc), reader.read, reader.context)
    return ConfigPartitions(source, named, None, reader.read, reader.context)


@unique
class PartitionStatus(StrEnum):
    """The fate of a source partition under a new config.

    `new`: the new config has it, and it has no offset, so the connector starts over there. `goes`: the new config does
    not have it, and its offset is left behind. `unused`: neither config has it.
    """

    STAYS = "stays"
    NEW = "new"
    GOES = "goes"
    UNUSED = "unused"
    UNKNOWN = "unknown"


class PartitionChange(Struct, frozen=True):
    """A source partition and its fate; `why` is given where that is unknown."""

    partition: Partition | None
    status: PartitionStatus
    why: str | None = None


class ConfigEffect(Struct, frozen=True):
    """The effect of a new config; `changed` are the properties that differ, `meanings` those of their changes besides.

    `unknown` says what hides the effect.
    """

    changed: tuple[str, ...]
    partitions: tuple[PartitionChange, ...]
    meanings: tuple[Meaning, ...] = ()
    unknown: str | None = None

    def of(self, *statuses: PartitionStatus) -> list[PartitionChange]:
        """Return the source partitions with these statuses."""
        return [each for each in self.partitions if each.status in statuses]

    @property
    def starts_over(self) -> list[Partition]:
        """The source partitions where the connector starts over, for sure."""
        return [each.partition or {} for each in self.of(PartitionStatus.NEW)]


def compare_configs(
    before: Config | None,
    after: Config,
    present: Sequence[Partition | None],
    *,
    readable: Collection[int] | None = None,
) -> ConfigEffect:
    """Return what becomes of the source partitions with an offset when `after` replaces `before` (None: is new).

    The name is of no interest: the offsets are taken as the connector's own. `readable` are the places in `present` of
    those whose offset is where the new config looks for it; without, that is unknown if the configs differ there.
    """
    old, new = None if before is None else partitions_of(before), partitions_of(after)
    changed = () if before is None else changed_names(before, after)
    harmless = before is not None and all(map(is_connects_own, changed))
    judged = [_judge(partition, old, new, changed, harmless=harmless) for partition in present]
    if any(name in changed for name in _OF_STORE):
        judged = [_elsewhere(each, readable, place) for place, each in enumerate(judged)]
    waiting = () if old is None or old.named is None else old.without_offset(present)  # it has committed none there yet
    known = [*present, *(each.partition for each in waiting)]
    fresh = [PartitionChange(each.partition, PartitionStatus.NEW) for each in new.without_offset(known)]
    meanings = () if before is None else tuple(_meanings(changed, (before, after), old, new))
    return ConfigEffect(changed, (*judged, *fresh), meanings, new.unknown)


def starts_over(connector: str, effect: ConfigEffect) -> Problem | None:
    """Return the problem of a connector that starts over somewhere, for sure; None if that is not certain."""
    fresh = effect.starts_over
    if not fresh:
        return None
    shown = ", ".join(json_text(dict(each)) for each in fresh[:_MOST_SHOWN])
    return Problem(
        STARTS_OVER,
        f"{connector} starts over: {counted(len(fresh), 'source partition')} of its config "
        f"{'has' if len(fresh) == 1 else 'have'} no offset: {shown}{', …' if len(fresh) > _MOST_SHOWN else ''}",
        hint="Keep the property that names them as it was, or give them offsets before the connector starts.",
    )


def changed_names(before: Config, after: Config) -> tuple[str, ...]:
    """Return the properties that one of two configs lacks, or has with another value; no value is as none."""
    return tuple(sorted(name for name in {*before, *after} if before.get(name) != after.get(name)))


def _judge(
    partition: Partition | None,
    old: ConfigPartitions | None,
    new: ConfigPartitions,
    changed: Collection[str],
    *,
    harmless: bool,
) -> PartitionChange:
    belongs = new.belongs(partition)
    if belongs is Belongs.NO:
        had = old is not None and old.belongs(partition) is not Belongs.NO
        return PartitionChange(partition, PartitionStatus.GOES if had else PartitionStatus.UNUSED)
    if harmless and (new.source is not None or _TASKS not in changed):
        return PartitionChange(partition, PartitionStatus.STAYS)
    why = _why_unknown(belongs, old, new, changed)
    if harmless:
        why = f"whether a connector of this class makes its source partitions of {_TASKS} is not known"
    return PartitionChange(partition, PartitionStatus.STAYS if why is None else PartitionStatus.UNKNOWN, why)


def _why_unknown(
    belongs: Belongs, old: ConfigPartitions | None, new: ConfigPartitions, changed: Collection[str]
) -> str | None:
    """Return why it is not known whether a source partition that the new config does not rule out stays."""
    if new.named is None:
        return new.unknown
    if old is not None and old.source is not new.source:
        return f"whether it takes an offset that another {PROPERTY} has written is not known"
    if old is not None and old.context != new.context:
        others = [name for name in new.context if old.context.get(name) != new.context[name]]
        return f"{', '.join(others or sorted(new.context))} may have a part in the name"
    is_same = old is not None and old.named is not None and old.read == new.read and _VERSION not in changed
    return None if belongs is Belongs.YES or is_same else "the config does not decide it alone"


def _elsewhere(change: PartitionChange, readable: Collection[int] | None, place: int) -> PartitionChange:
    """Return what becomes of a source partition whose offset the new config looks for in another store."""
    if change.status is not PartitionStatus.STAYS:
        return change
    if readable is None:
        return replace(change, status=PartitionStatus.UNKNOWN, why=f"its offset may not be where {OFFSETS_TOPIC} leads")
    if place in readable:
        return change
    return replace(change, status=PartitionStatus.NEW, why="its offset is not where the new config looks for it")


def _meanings(
    changed: Sequence[str],
    configs: tuple[Config, Config],
    old: ConfigPartitions | None,
    new: ConfigPartitions,
) -> Iterable[Meaning]:
    before, after = configs
    if stores := tuple(name for name in changed if name in _OF_STORE):
        yield Meaning(stores, "The connector looks for its offsets in another topic.")
    if PROPERTY in changed and old is not None and not (old.source is new.source and _is_one_class(before, after)):
        text = "The other class finds the offsets that this one wrote, if its source partitions are the same."
        yield Meaning((PROPERTY,), text)
    if old is None or old.source is None or old.source is not new.source:
        return
    logins = [name for name in _ADDRESSES if address(before.get(name) or "") == address(after.get(name) or "")]
    for meaning in old.source.of_config.meanings:
        if names := tuple(name for name in changed if name in meaning.properties and name not in logins):
            yield replace(meaning, properties=names)


def _is_one_class(before: Config, after: Config) -> bool:
    return pruned_class(before) == pruned_class(after)
