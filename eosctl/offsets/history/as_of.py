"""`offsets set --as-of`: finds the former version of each source partition; refuses versions that the log has lost."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from eosctl.app import App
from eosctl.core.java.numbers import whole_number
from eosctl.core.offsets.records import json_text
from eosctl.core.wording import rfc3339
from eosctl.deadline import Clock
from eosctl.errors import RefusedError
from eosctl.foreign import shell_word
from eosctl.offsets.history.events import State, Version, version_at
from eosctl.offsets.history.log import LogQuery, OffsetLogs, read_logs
from eosctl.state.history import since_ms

_MOST_NAMED = 10


class AsOf(Struct, frozen=True):
    """A moment or an offset of the log, one of both. No `partitions` (JSON) means all that the connector has.

    `store` is the log to read; None is the connector's own topic, and the global one for keys that it never had.
    """

    moment_ms: int | None
    log_offset: int | None
    partitions: tuple[str, ...] = ()
    store: str | None = None


def as_of(text: str, clock: Clock, partitions: Sequence[str] = (), *, store: str | None = None) -> AsOf:
    """Parse `--as-of`: a number is an offset of the log, anything else a time; raise UsageError."""
    offset = whole_number(text)
    if offset is not None:
        return AsOf(None, offset, tuple(partitions), store)
    return AsOf(since_ms(text, clock), None, tuple(partitions), store)


def former_versions(app: App, connector: str, wanted: AsOf) -> list[Version]:
    """Return a live version of each wanted source partition.

    Raises RefusedError for a version that the log does not have, and the errors of `read_logs`.
    """
    logs = read_logs(app, LogQuery(connector, wanted.partitions, wanted.store))
    if wanted.log_offset is not None:
        return [_at_offset(connector, logs, wanted.log_offset)]
    if not logs.versions():
        raise RefusedError(
            f"the log has no offset of {connector}; nothing was written", hint=f"{_show_log(connector)}."
        )
    moment_ms = wanted.moment_ms or 0
    found = [_at_moment(connector, same, moment_ms) for same in _by_source_partition(logs).values()]
    return [version for version in found if version is not None]


def _by_source_partition(logs: OffsetLogs) -> Mapping[str, list[list[Version]]]:
    """Group versions by the identity of their source partition and by topic, the connector's own topic first."""
    found: dict[str, list[list[Version]]] = {}
    for number, log in enumerate(logs.logs):
        for version in log.versions:
            found.setdefault(version.key.identity, [[] for _ in logs.logs])[number].append(version)
    return found


def _at_moment(connector: str, topics: Sequence[Sequence[Version]], moment_ms: int) -> Version | None:
    """Return the version that took effect at a moment; None if there was no offset then and is none now.

    Raises RefusedError if there is an offset now and was none then, or if the log does not have it.
    """
    then, now = _counting(topics, moment_ms), _counting(topics, sys.maxsize)
    if then is not None and not then.is_tombstone:
        return then
    if now is None or now.is_tombstone:
        return None
    shown, moment = json_text(now.key.partition), rfc3339(moment_ms)
    if then is not None:
        raise RefusedError(
            f"{shown} had no offset at {moment}: it was deleted at {rfc3339(then.record.timestamp_ms)}; nothing was "
            "written",
            hint=f"`eosctl offsets reset --connector {shell_word(connector)} --partition {shell_word(shown)}` deletes "
            "it; name the others with --partition.",
        )
    every = [version for versions in topics for version in versions if version.state is State.COMMITTED]
    oldest = _place(min(every, key=lambda version: version.record.timestamp_ms))
    raise RefusedError(
        f"the log has no offset of {shown} from {moment} or before: the oldest is {oldest}; nothing was written",
        hint=f"{_show_log(connector)}; name the source partitions that are meant with --partition.",
    )


def _counting(topics: Sequence[Sequence[Version]], moment_ms: int) -> Version | None:
    """Return the version that took effect at a moment: that of the first topic that had any."""
    return next(filter(None, (version_at(versions, moment_ms) for versions in topics)), None)


def _at_offset(connector: str, logs: OffsetLogs, offset: int) -> Version:
    """Return the one committed version at an offset of the log."""
    every = logs.versions()
    at_offset = [version for version in every if version.record.offset == offset]
    found = [version for version in at_offset if version.state is State.COMMITTED and not version.is_tombstone]
    if not found:
        why = f"the version there is {_state_text(at_offset[0])}" if at_offset else f"it has {_places(every)}"
        raise RefusedError(
            f"the log has no committed offset of {connector} at offset {offset}: {why}; nothing was written",
            hint=f"{_show_log(connector)}.",
        )
    if len({(version.key.identity, version.record.value) for version in found}) > 1:
        raise RefusedError(
            f"several source partitions or topics have a version at offset {offset}: {_places(found)}; nothing was "
            "written",
            hint="Say which one with --partition, and --from TOPIC.",
        )
    return found[0]


def _state_text(version: Version) -> str:
    return "a deletion" if version.is_tombstone else "not decided yet" if version.state is None else version.state.value


def _places(versions: Iterable[Version]) -> str:
    """Format the places of some versions, the newest last."""
    every = [version for version in versions if version.state is State.COMMITTED and not version.is_tombstone]
    more = f"{len(every) - _MOST_NAMED} older ones, " if len(every) > _MOST_NAMED else ""
    return more + ", ".join(_place(version) for version in every[-_MOST_NAMED:]) if every else "none"


def _place(version: Version) -> str:
    record = version.record
    return f"offset {record.offset} of {record.topic}-{record.partition} ({rfc3339(record.timestamp_ms)})"


def _show_log(connector: str) -> str:
    return f"`eosctl offsets log --connector {shell_word(connector)}` shows every version that there is"
