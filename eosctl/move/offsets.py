"""Plans the writes that give a connector its offsets on the side that it moves to.

What it has on the side that it leaves is the documented view of its own topic over the global one, whose deletions
count. The keys' bytes are carried as they are, but for the connector's name. Offsets that lie on the other side already
under its name count for its tasks, too: newer ones are never overwritten, and those of source partitions that it does
not have are never left there, unless the user says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.connectors.dedicated import TOPIC_PROPERTY, OtherCluster, servers_of
from eosctl.connectors.look import describe_store, store_name, topic_of
from eosctl.core.allowances import NOTHING_WAIVED, Waiver
from eosctl.core.clients.own_brokers import own_brokers
from eosctl.core.offsets.names import GLOBAL
from eosctl.core.offsets.records import OffsetKey
from eosctl.core.offsets.views import KeyAction, PlannedWrite, Store, live
from eosctl.core.wording import counted, is_topic_name
from eosctl.errors import RefusedError
from eosctl.move.rules import in_use, leftovers
from eosctl.move.sides import Side
from eosctl.offsets.history.events import order_of_values
from eosctl.offsets.history.gtids import Order
from eosctl.offsets.stores.gather import OffsetStores, gather_topics
from eosctl.offsets.stores.own import refuse_unfit_targets
from eosctl.offsets.switch.elsewhere import stores_elsewhere
from eosctl.offsets.switch.takeover import ONLY_IN_TARGET, plan_takeover
from eosctl.offsets.write_rows import MOVE
from eosctl.offsets.writes import OffsetWritePlan, refuse_hidden, refuse_hidden_in_target, write_plan


class OffsetsTopic(Struct, frozen=True):
    """The offsets topic that a connector uses on one side; `at` leads to it where it is on brokers of its own."""

    side: Side
    store: str
    at: OtherCluster | None = None

    @property
    def topic(self) -> str:
        """Its name."""
        return topic_of(self.side.app, self.store)

    def app(self) -> App:
        """Return the App with the topics of its cluster, and the workers of the side."""
        app = self.side.pinned()
        return app if self.at is None else self.at.with_topics(app)

    def read(self) -> tuple[OffsetStores, Store, Store | None]:
        """Read the topic, which may not exist yet, and the global one if that is another one.

        Return all that was read on its cluster, its own store, and the global one.
        """
        if self.at is not None:
            found, documented = stores_elsewhere(self.side.pinned(), self.at, self.topic, self.topic)
            return found, found.stores[self.topic].of(self.side.connector), documented.of(self.side.connector)
        app = self.side.pinned()
        found = gather_topics(app, [app.target.offset_topic], if_there=[self.topic])
        own, shared = (found.stores[name].of(self.side.connector) for name in (self.topic, found.global_topic))
        return found, own, None if self.store == GLOBAL else shared

    def __str__(self) -> str:
        return describe_store(self.store)


def offsets_topic(side: Side, config: Mapping[str, str]) -> OffsetsTopic:
    """Return the offsets topic that the connector uses on this side with this config.

    Raises RefusedError where the config does not show it.
    """
    own = config.get(TOPIC_PROPERTY)
    if own and not is_topic_name(own):
        raise RefusedError(
            f"only its workers can resolve {TOPIC_PROPERTY} of {side.connector} ({own}), so where its offsets are in "
            f"{side.where} is not known; nothing was changed",
            hint=f"Put the topic's name itself into {TOPIC_PROPERTY}; it is no secret.",
        )
    store = store_name(side.app, own)
    brokers = own_brokers(config, here=servers_of(side.app))
    if brokers is None:
        return OffsetsTopic(side, store)
    if brokers.settings is None or store == GLOBAL:
        why = brokers.why_not or f"it has no {TOPIC_PROPERTY}, so that the worker's mode decides where its offsets are"
        raise RefusedError(
            f"the config of {side.connector} names Kafka brokers of its own ({brokers.servers}), and {why}; nothing "
            "was changed",
            hint="`eosctl offsets switch --to TOPIC@PROFILE` gives it an offsets topic there. A connector whose "
            "brokers only its workers can reach is moved by hand: stop, create STOPPED, copy its offsets, resume.",
        )
    return OffsetsTopic(side, store, OtherCluster(brokers.settings))


class Arrival(Struct, frozen=True):
    """The offsets that a connector must have on the other side, and the writes that give them to it.

    There is nothing to write where both sides have the same topic, and the same keys.
    """

    origin: OffsetsTopic
    target: OffsetsTopic
    expected: Store
    writes: OffsetWritePlan

    def live(self) -> list[OffsetKey]:
        """Return the keys that have an offset."""
        keys = self.expected.connectors.get(self.target.side.connector, ())
        return [key for key in keys if live(self.expected.records.get(key.raw)) is not None]


def plan_arrival(origin: OffsetsTopic, target: OffsetsTopic, *, overwrite: bool, settled: bool = False) -> Arrival:
    """Compare both sides and plan what the target lacks; with `settled`, refuse while something hides offsets.

    Raises RefusedError for newer offsets that the target has already, unless they are to be overwritten.
    """
    connector, name = origin.side.connector, target.side.connector
    found, there, own = _read_both(origin, target)
    if settled:
        refuse_hidden(origin.side.app, connector, stores=own)
    expected = in_use(own[0], own[1] if len(own) > 1 else None, connector, name)
    with target.app().topics() as topics:
        refuse_unfit_targets(target.side.app, topics, [target.topic], **({} if target.at is None else {"configs": {}}))
    if settled:
        refuse_hidden_in_target(target.side.app, name, there, written=expected.records)
    writes = plan_takeover(expected, there, name)
    left = [write for write in leftovers(writes, name) if not _is_older(write, expected)]
    if left and not overwrite:
        raise _newer_there(left, target)
    taken = [_removed(write, name) for write in writes]
    return Arrival(origin, target, expected, write_plan(MOVE, taken, found, allowances=NOTHING_WAIVED))


def _read_both(origin: OffsetsTopic, target: OffsetsTopic) -> tuple[OffsetStores, Store, list[Store]]:
    """Read the target's topic, and those of the origin: its own, and the global one if that is another.

    One topic of both sides is read once: while the connector runs, a later look at it has newer offsets.
    """
    before, own, fallback = origin.read()
    found, there, _global = target.read()
    if (before.cluster_id, origin.topic) == (found.cluster_id, target.topic):
        own = found.stores[target.topic].of(origin.side.connector)
    return found, there, [own, *([] if fallback is None else [fallback])]


def _is_older(write: PlannedWrite, expected: Store) -> bool:
    """Decide whether the offset that is there already precedes the one that comes: by its source, else by its age."""
    mine, theirs = expected.records.get(write.key.raw), write.before
    if mine is None or theirs is None:
        return theirs is None
    partition = write.key.partition if isinstance(write.key, OffsetKey) else None
    order = order_of_values(partition, mine.value, theirs.value)
    if order in (Order.BEHIND, Order.EQUAL):
        return True
    return order not in (Order.AHEAD, Order.MIXED) and theirs.timestamp_ms <= mine.timestamp_ms


def _removed(write: PlannedWrite, name: str) -> PlannedWrite:
    """Return the write, a deletion for a key that only the target has."""
    if write.reason != ONLY_IN_TARGET or write.key.connector != name or live(write.before) is None:
        return write
    return replace(write, action=KeyAction.DELETE, reason="deleted_in_use", after=None, conflict=True)


def _newer_there(left: Sequence[PlannedWrite], target: OffsetsTopic) -> RefusedError:
    side = target.side
    return RefusedError(
        f"{target} of {side.where} has {counted(len(left), 'offset')} of a connector {side.connector} already that "
        f"{'is' if len(left) == 1 else 'are'} newer than what would come, or of a source partition that it does not "
        f"have, first {left[0].key.raw.decode('utf-8', 'backslashreplace')}; nothing was written there",
        hint=f"`{side.offsets_command()}` shows them. They are those of another connector: --rename gives this one "
        f"another name, `eosctl offsets reset` removes them, or {Waiver.OVERWRITE_OFFSETS} puts those of this side in "
        "their place.",
    )


def refuse_left_behind(origin: OffsetsTopic, target: OffsetsTopic) -> None:
    """Raise RefusedError if the side that the connector left has newer offsets than the one where it may have run."""
    _found, there, own = _read_both(origin, target)
    expected = in_use(own[0], own[1] if len(own) > 1 else None, origin.side.connector, target.side.connector)
    writes = plan_takeover(expected, there, target.side.connector)
    newer = [write for write in writes if write.sends() and (write.before is None or _is_older(write, expected))]
    if newer:
        raise RefusedError(
            f"{origin.side.connector} has {counted(len(newer), 'offset')} in {origin.side.where} that "
            f"{'is' if len(newer) == 1 else 'are'} newer than in {target.side.where}, where it may have run since: it "
            "ran on both sides; nothing was changed",
            hint=f"`{origin.side.offsets_command()}` and `{target.side.offsets_command()}` show both.",
        )
