"""Finds offsets that tasks do not see, or that went back: a restart would make a connector read again. Pure.

The offset that takes effect is that of Kafka 3.3 to 4.3: a connector with a topic of its own reads that, and nothing
else. An offset is reported as gone back only for sources that are known to read in one direction, and only while it
still lies before the former one: afterwards all was read again, and nothing is left to put back. A deletion in between
was meant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from msgspec import Struct

from eosctl.core.findings import ERROR, Finding
from eosctl.core.offsets.names import DEDICATED, GLOBAL
from eosctl.core.offsets.records import OffsetKey, json_text, shown_partition, shown_value
from eosctl.core.offsets.views import Flag, OffsetView, Store, live, offset_views
from eosctl.core.records import Record
from eosctl.core.wording import counted, json_bytes
from eosctl.foreign import arguments, shell_word, shell_words
from eosctl.offsets import codes
from eosctl.offsets.history.events import lies_before
from eosctl.offsets.history.rules import KeyHistory, OffsetHistory

BEFORE_RESTARTS = frozenset(
    {codes.OFFSETS_HIDDEN, codes.OFFSETS_TOPIC_EMPTY, codes.OFFSETS_WENT_BACK, codes.OFFSETS_DELETED}
)
"""The findings to fix before any restart: tasks that start would go on from the wrong place."""
ShowTime = Callable[[int], str]
"""A timestamp in ms as `offsets log` shows it, and `--as-of` takes it."""
_MOST_NAMED = 10
_MOST_COMMANDS = 3


class WatchedTopic(Struct, frozen=True):
    """An offsets topic, and the furthest former value of each offset in it; `written`: it ever had a record."""

    store: Store
    history: OffsetHistory
    written: bool = True


class _Jump(Struct, frozen=True):
    """An offset that lies before a former one: tasks get `newest`; `back` is the first that lay before `furthest`."""

    key: OffsetKey
    furthest: Record
    back: Record
    newest: Record


def lost_offsets(
    common: WatchedTopic,
    own: Mapping[str, WatchedTopic],
    connectors: Iterable[str],
    *,
    show_time: ShowTime,
    former: Mapping[str, Store],
) -> list[Finding]:
    """Return findings about `connectors`, sorted by name.

    `own` are the dedicated topics by connector, `common` is the global topic, and `former` are the former topics of
    connectors without one.
    """
    found: list[Finding] = []
    gone_back = _gone_back(common)
    for name in sorted(connectors):
        topic = own.get(name)
        if topic is not None:
            found += _hidden(name, common, topic)
            gone = _gone_back_in_own(name, common, topic)
        else:
            gone = gone_back.get(name, [])
            if name in former:
                found += _left_behind(name, common.store, former[name])
                every = [*_behind_former(name, common, former[name]), *gone]
                gone = list({jump.key.raw: jump for jump in every}.values())
        if gone:
            keys = (common if topic is None else topic).store.connectors.get(name, ())
            found.append(_went_back(name, gone, keys=len(keys), show_time=show_time))
    return found


def _hidden(connector: str, common: WatchedTopic, own: WatchedTopic) -> Iterable[Finding]:
    """Find offsets of the global topic that the connector's own one lacks."""
    views = offset_views({GLOBAL: common.store, DEDICATED: own.store}, connector, dedicated_in_use=True)
    unseen = [view for view in views if view.documented is not view.runtime and not _is_meant_or_undecided(view)]
    if not unseen:
        return
    topic, other = own.store.topic, common.store.topic
    present = [view for view in views if view.documented is not None]
    merge = f"`eosctl offsets merge --connector {shell_word(connector)} --into dedicated`"
    fix = f"Before any restart: {_around(connector, merge)}."
    evidence = {
        "topic": topic,
        "global_topic": other,
        "hidden": len(unseen),
        "offsets": len(present),
        "source_partitions": [_partition(view.key) for view in unseen[:_MOST_NAMED]],
    }
    offsets = f"{len(unseen)} of {counted(len(present), 'offset')}"
    if own.written:
        message = f"{connector}: {offsets} not seen at runtime: {other} has what its own topic {topic} lacks"
        yield Finding(
            codes.OFFSETS_HIDDEN,
            ERROR,
            connector,
            f"{message}, and tasks that start read that from the beginning",
            fix,
            evidence,
        )
    else:
        message = f"{connector}: its own topic {topic} is empty, it was deleted and recreated, or never filled"
        more = f"{offsets} not seen at runtime, {other} has them; tasks that start read their source from the beginning"
        yield Finding(codes.OFFSETS_TOPIC_EMPTY, ERROR, connector, f"{message}: {more}", fix, evidence)


def _is_meant_or_undecided(view: OffsetView) -> bool:
    """Decide whether a transaction hides the offset in its own topic, or a later deletion there is a reset."""
    deleted, copy = view.cells[DEDICATED], view.cells[GLOBAL]
    is_reset = deleted is not None and copy is not None and deleted.timestamp_ms >= copy.timestamp_ms
    return is_reset or Flag.HIDDEN in view.flags


def _left_behind(connector: str, common: Store, former: Store) -> Iterable[Finding]:
    """Find offsets in the connector's former topic that the global one lacks, even as a reset."""
    keys = former.connectors.get(connector, ())
    present = [key for key in keys if live(former.records[key.raw])]
    left = [key for key in present if key.raw not in common.records and not common.hides(key.raw)]
    if not left:
        return
    words = ["eosctl", "offsets", "merge", "--connector", connector, "--into", "global", "--from", former.topic]
    yield Finding(
        codes.OFFSETS_HIDDEN, ERROR, connector,
        f"{connector}: {len(left)} of {counted(len(present), 'offset')} not seen at runtime: {former.topic}, which its "
        f"config named before, has what {common.topic} lacks, and tasks that start read that from the beginning",
        f"Before any restart: {_around(connector, f'`{shell_words(*words)}`')}.",
        {
            "topic": former.topic,
            "global_topic": common.topic,
            "hidden": len(left),
            "offsets": len(present),
            "source_partitions": [_partition(key) for key in left[:_MOST_NAMED]],
        },
    )  # fmt: skip


def _behind_former(connector: str, common: WatchedTopic, former: Store) -> Iterable[_Jump]:
    """Find offsets of the global topic that lie before those of the connector's former topic."""
    for key in former.connectors.get(connector, ()):
        was, now = live(former.records[key.raw]), live(common.store.records.get(key.raw))
        if was is None or now is None or not lies_before(key, now, was):
            continue
        key_history = common.history.key_history(key, now.partition)
        if key_history.deleted_ms <= was.timestamp_ms and not common.history.is_meant(connector, now):
            yield _Jump(key, was, now, now)


def _gone_back(common: WatchedTopic) -> dict[str, list[_Jump]]:
    """Return the offsets that went back, of each connector with nothing but the global topic."""
    found: dict[str, list[_Jump]] = {}
    for key_history in common.history.gone_back():
        newest = common.store.records.get(key_history.key.raw)
        jump = None if newest is None else _jump(key_history, newest)
        if jump is not None:
            found.setdefault(key_history.key.connector, []).append(jump)
    return found


def _gone_back_in_own(connector: str, common: WatchedTopic, own: WatchedTopic) -> list[_Jump]:
    """Return offsets in the connector's own topic that lie before a former one there or in the global topic."""
    found = []
    for key in own.store.connectors.get(connector, ()):
        newest = live(own.store.records[key.raw])
        if newest is None or own.store.hides(key.raw):
            continue
        copy = common.store.records.get(key.raw)
        if _is_plain(key, newest, copy, own, common):
            continue
        key_history = own.history.key_history(key, newest.partition)
        if copy is not None:
            key_history = _further(key_history, common.history.key_history(key, copy.partition))
        jump = _jump(key_history, newest)
        if jump is not None:
            found.append(jump)
    return found


def _is_plain(key: OffsetKey, newest: Record, copy: Record | None, own: WatchedTopic, common: WatchedTopic) -> bool:
    """Decide, without parsing, whether the offset went back in neither topic and is the same in both."""
    if own.history.has_gone_back(key.raw, newest.partition):
        return False
    return copy is None or (copy.value == newest.value and not common.history.has_gone_back(key.raw, copy.partition))


def _further(own: KeyHistory, copies: KeyHistory) -> KeyHistory:
    """Return the history with the further offset of both; a deletion in one of the topics counts for the other."""
    deleted_ms = max(own.deleted_ms, copies.deleted_ms)
    after = [each for each in (own, copies) if each.furthest and each.furthest.timestamp_ms > deleted_ms]
    if len(after) < 2:
        return after[0] if after else replace(own, furthest=None, back=None)
    if own.furthest and copies.furthest and lies_before(own.key, own.furthest, copies.furthest):
        backs = [each for each in (own.back, copies.back) if each is not None]
        return replace(copies, back=min(backs, key=lambda each: each.timestamp_ms, default=None))
    return own


def _jump(key_history: KeyHistory, newest: Record) -> _Jump | None:
    if key_history.furthest is None or not lies_before(key_history.key, newest, key_history.furthest):
        return None
    return _Jump(key_history.key, key_history.furthest, key_history.back or newest, newest)


def _went_back(connector: str, jumps: Sequence[_Jump], *, keys: int, show_time: ShowTime) -> Finding:
    first = jumps[0]
    more = f", and so did {counted(len(jumps) - 1, 'other offset')}" if len(jumps) > 1 else ""
    meant = f"{codes.OFFSETS_WENT_BACK}:{connector}"
    put_back = _commands(connector, jumps, keys=keys, show_time=show_time)
    return Finding(
        codes.OFFSETS_WENT_BACK, ERROR, connector,
        f"{connector}: the offset of {json_text(first.key.partition)} went back from {_value(first.furthest)} "
        f"({_place(first.furthest)}) to {_value(first.back)} ({_place(first.back)}){more}: what lies between is read "
        "again, and is in Kafka twice",
        f"Before any restart: {_around(connector, put_back)}. If somebody meant it: `eosctl doctor --ignore "
        f"{shell_word(meant)}`.",
        {
            "topic": first.newest.topic,
            "offsets": [
                {
                    "source_partition": _partition(jump.key),
                    "former": _cell(jump.furthest),
                    "back": _cell(jump.back),
                    "now": _cell(jump.newest),
                }
                for jump in jumps[:_MOST_NAMED]
            ],
            "went_back": len(jumps),
        },
    )  # fmt: skip


def _commands(connector: str, jumps: Sequence[_Jump], *, keys: int, show_time: ShowTime) -> str:
    """Return one command with a time if that is right for all, else one for each with its place in the log."""
    moment_ms = max(jump.furthest.timestamp_ms for jump in jumps)
    topics = {jump.furthest.topic for jump in jumps}
    if len(jumps) > 1 and len(topics) == 1 and moment_ms < min(jump.back.timestamp_ms for jump in jumps):
        named = jumps if len(jumps) < keys else ()
        return _set(connector, show_time(moment_ms), topics.pop(), [jump.key for jump in named])
    first = jumps[:_MOST_COMMANDS]
    lines = [_set(connector, str(jump.furthest.offset), jump.furthest.topic, [jump.key]) for jump in first]
    if len(jumps) > len(first):
        show = f"`{shell_words('eosctl', 'offsets', 'log', '--connector', connector)}` shows their places"
        lines.append(f"and so for {len(jumps) - len(first)} more ({show})")
    return ", ".join(lines)


def _set(connector: str, as_of: str, topic: str, keys: Iterable[OffsetKey]) -> str:
    words = ["eosctl", "offsets", "set", "--connector", connector, "--as-of", as_of, "--from", topic]
    partitions = [word for key in keys for word in ("--partition", json_text(key.partition))]
    return f"`{shell_words(*words, *partitions)}`"


def _around(connector: str, commands: str) -> str:
    """Return the commands, with the connector stopped for them."""
    quoted = arguments(connector)
    return f"`eosctl connectors stop {quoted}`, {commands}, `eosctl connectors resume {quoted}`"


def _value(record: Record) -> str:
    value = shown_value(record.value)
    return "something that is not JSON" if isinstance(value, bytes) else json_text(value)


def _partition(key: OffsetKey) -> object:
    shown = shown_partition(key)
    return json_bytes(shown) if isinstance(shown, bytes) else shown


def _place(record: Record) -> str:
    return f"{record.topic}-{record.partition} offset {record.offset}"


def _cell(record: Record) -> dict[str, object]:
    place = {"topic": record.topic, "partition": record.partition, "offset": record.offset}
    return {**place, "timestamp_ms": record.timestamp_ms, "value": json_bytes(record.value)}
