"""The order of two offsets of a well-known connector, member by member. Pure.

Each function takes two offsets and returns the parts that decide: each member that determines where the connector goes
on, and its order. A part of an unexpected type, or from two places that have no common order, is incomparable. What the
functions know is from the connectors' sources; `sources` says from which version, and what a running one confirmed.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from eosctl.offsets.history.gtids import Order, compare_gtids, order_of

Offset = Mapping[str, object]


class PositionPart(Struct, frozen=True):
    """The order of one member; `grows`: the connector itself never puts it back while it reads on."""

    member: str
    order: Order
    grows: bool = False


Compare = Callable[[object, object], Order]


def in_turn(
    before: Offset, after: Offset, members: Sequence[tuple[str, Compare]], *, grows: bool
) -> list[PositionPart]:
    """Return the order of the first member that is not equal; no part if all are."""
    for member, compare in members:
        order = compare(before.get(member), after.get(member))
        if order is not Order.EQUAL:
            return [PositionPart(member, order, grows)]
    return []


def _ordered(before: Any, after: Any) -> Order:
    if before == after:
        return Order.EQUAL
    return Order.AHEAD if after > before else Order.BEHIND


def _number(value: object) -> int | None:
    """Return an integer, also one that is written as text; None for anything else."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,40}", value):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def numbers(before: object, after: object) -> Order:
    """Return the order of two integers; anything else that differs is incomparable."""
    old, new = _number(before), _number(after)
    if old is None or new is None:
        return Order.EQUAL if before is None and after is None else Order.INCOMPARABLE
    return _ordered(old, new)


def counts(before: object, after: object) -> Order:
    """Return the order of two integers, of which a missing one is 0."""
    return numbers(0 if before is None else before, 0 if after is None else after)


def counter(member: str, *, grows: bool = False) -> Callable[[Offset, Offset], list[PositionPart]]:
    """Return the comparison of offsets that are one number."""
    return lambda before, after: in_turn(before, after, [(member, numbers)], grows=grows)


def never(member: str) -> Callable[[Offset, Offset], list[PositionPart]]:
    """Return the comparison of offsets whose values have no order."""

    def compare(before: Offset, after: Offset) -> list[PositionPart]:
        return [] if before.get(member) == after.get(member) else [PositionPart(member, Order.INCOMPARABLE)]

    return compare


class _WalPosition(Struct, frozen=True):
    """The place in PostgreSQL's log up to which an offset was read.

    All transactions up to `commit`, then changes of the next one up to `change`. `is_exact`: the connector had seen
    that commit; else `commit` is only where the server begins.
    """

    commit: int
    change: int
    stage: int
    is_exact: bool

    @property
    def is_between(self) -> bool:
        """Whether no transaction had been begun: COMMIT's end may be the number of the next one's first change."""
        return self.stage == _BETWEEN and self.change == self.commit

    def place(self) -> tuple[int, int]:
        """Return the place in a transaction."""
        return self.change, self.stage


_BETWEEN, _BEGUN, _CHANGED = range(3)
_STAGES = {None: _BETWEEN, "COMMIT": _BETWEEN, "MESSAGE": _BETWEEN, "BEGIN": _BEGUN}


def postgresql(before: Offset, after: Offset) -> list[PositionPart]:
    """Compare by the last commit, then by the change and the event in the transaction that follows it.

    PostgreSQL sends transactions in the order of their commits: a change may have a smaller log sequence number than
    one of a transaction before it. So WalPositionLocator looks for the place where to go on.
    """
    old, new = _wal_position(before), _wal_position(after)
    change = "lsn" if before.get("lsn_proc") is None and after.get("lsn_proc") is None else "lsn_proc"
    if before.get(change) == after.get(change):
        change = "lsn_commit" if before.get("lsn_commit") != after.get("lsn_commit") else "messageType"
    if old is None or new is None:
        return [PositionPart(change, Order.INCOMPARABLE)]
    if old.commit != new.commit and (old.is_exact or new.is_exact):
        order = _by_commit(old, new) if old.commit < new.commit else _reversed(_by_commit(new, old))
        both = old.is_exact and new.is_exact
        return [PositionPart("lsn_commit" if both else change, order, grows=both)]
    if old.commit == new.commit and old.is_between != new.is_between:
        return [PositionPart(change, Order.AHEAD if old.is_between else Order.BEHIND)]
    if old.place() != new.place():
        return [PositionPart(change, _ordered(old.place(), new.place()))]
    return in_turn(before, after, [("lsn_events_processed", numbers)], grows=False)


def _wal_position(offset: Offset) -> _WalPosition | None:
    """Read an offset as PostgresOffsetContext.Loader does; None without log sequence numbers."""
    commit, change = offset.get("lsn_commit"), offset.get("lsn_proc")
    change = offset.get("lsn") if change is None else change
    is_exact = commit is not None
    commit = change if commit is None else commit
    if type(commit) is not int or type(change) is not int:
        return None
    kind = offset.get("messageType")
    stage = _STAGES.get(kind, _CHANGED) if kind is None or isinstance(kind, str) else _CHANGED
    return _WalPosition(commit, change, stage, is_exact)


def _by_commit(first: _WalPosition, second: _WalPosition) -> Order:
    """Return the order of two positions of which the second has the greater commit.

    A change that had been read shows that its transaction commits later than that: the second has less of it.
    """
    if first.is_between:
        return Order.AHEAD
    if first.change >= second.commit:
        return Order.BEHIND if second.is_between else Order.INCOMPARABLE
    return Order.AHEAD if second.is_exact else Order.INCOMPARABLE


def _reversed(order: Order) -> Order:
    return {Order.AHEAD: Order.BEHIND, Order.BEHIND: Order.AHEAD}.get(order, order)


_BINLOG = re.compile(r"(.*)\.([0-9]{1,18})", re.DOTALL)


def binlog(before: Offset, after: Offset) -> list[PositionPart]:
    """Compare by GTIDs where there are any, else by file and position (BinlogHistoryRecordComparator).

    Two servers count their files separately. Within one GTID transaction a connector that connects again counts its
    events anew.
    """
    old, new = before.get("gtids") or None, after.get("gtids") or None
    if old is not None or new is not None:
        both = isinstance(old, str) and isinstance(new, str)
        order = compare_gtids(str(old), str(new)) if both else Order.INCOMPARABLE
        within = [("event", counts), ("row", counts)] if order is Order.EQUAL else []
        return [PositionPart("gtids", order, grows=True), *in_turn(before, after, within, grows=False)]
    servers = [offset.get("server_id") for offset in (before, after)]
    if None not in servers and servers[0] != servers[1]:
        return [PositionPart("server_id", Order.INCOMPARABLE)]
    members = [("file", _binlog_files), ("pos", numbers), ("event", counts), ("row", counts)]
    return in_turn(before, after, members, grows=True)


def _binlog_files(before: object, after: object) -> Order:
    found = [_BINLOG.fullmatch(name) if isinstance(name, str) else None for name in (before, after)]
    if found[0] is None or found[1] is None or found[0][1] != found[1][1]:
        return Order.EQUAL if before == after else Order.INCOMPARABLE
    return _ordered(int(found[0][2]), int(found[1][2]))


_FORM = re.compile(r"0+(?::0+)*")


def sql_server(before: Offset, after: Offset) -> list[PositionPart]:
    """Compare by the commit, then the change in it, then the event of the change (TxLogPosition)."""
    commit = in_turn(before, after, [("commit_lsn", _lsns)], grows=True)
    return commit or in_turn(before, after, [("change_lsn", _change_lsns), ("event_serial_no", counts)], grows=False)


def _change_lsns(before: object, after: object) -> Order:
    """Return the order of two changes in one commit; a snapshot leaves none."""
    return _lsns("NULL" if before is None else before, "NULL" if after is None else after)


def _lsns(before: object, after: object) -> Order:
    """Return the order of two log sequence numbers of one form; NULL is the smallest."""
    if not isinstance(before, str) or not isinstance(after, str):
        return _same(before, after)
    old, new = ("" if text == "NULL" else text.lower() for text in (before, after))
    forms = {re.sub("[0-9a-f]", "0", text) for text in (old, new) if text}
    is_one_form = len(forms) < 2 and all(_FORM.fullmatch(form) for form in forms)
    return _ordered(old, new) if is_one_form else _same(old, new)


def oracle(before: Offset, after: Offset) -> list[PositionPart]:
    """Compare by where mining begins, and by what was committed in each redo thread; XStream by its position.

    Transactions up to `commit_scn` are not read again, wherever `scn` is.
    """
    if before.get("lcr_position") is not None or after.get("lcr_position") is not None:
        return in_turn(before, after, [("lcr_position", _lsns)], grows=False)
    scn = in_turn(before, after, [("scn", numbers), ("scn_idx", numbers)], grows=False)
    commits = in_turn(before, after, [("commit_scn", _commit_scns)], grows=True)
    if scn or commits:
        return [*scn, *commits]
    return in_turn(before, after, [("txId", _same), ("txSeq", numbers)], grows=False)


def _same(before: object, after: object) -> Order:
    return Order.EQUAL if before == after else Order.INCOMPARABLE


def _commit_scns(before: object, after: object) -> Order:
    """Compare each redo thread: the system change number, then the ids of the transactions committed there."""
    old, new = _redo_threads(before), _redo_threads(after)
    if old is None or new is None:
        return _same(before, after)
    return order_of(_in_thread(old.get(thread, (-1, set())), new.get(thread, (-1, set()))) for thread in old | new)


def _in_thread(before: tuple[int, set[str]], after: tuple[int, set[str]]) -> Order:
    if before[0] != after[0]:
        return _ordered(before[0], after[0])
    more, fewer = after[1] - before[1], before[1] - after[1]
    return order_of([*([Order.AHEAD] if more else []), *([Order.BEHIND] if fewer else [])])


def _redo_threads(value: object) -> dict[int, tuple[int, set[str]]] | None:
    """Map each redo thread of a `commit_scn` to its number and transactions; None for another text.

    Debezium writes SCN:THREAD:TXID-TXID; 1.9.5 wrote SCN:x:x:THREAD, and older ones the number alone, for thread 1.
    """
    found: dict[int, tuple[int, set[str]]] = {}
    for entry in [] if value is None else str(value).split(","):
        parts = entry.split(":")
        thread = {1: "1", 3: parts[1:2], 4: parts[3:4]}.get(len(parts), "")
        scn, number = _number(parts[0]), _number("".join(thread))
        if scn is None or number is None or number in found:
            return None
        found[number] = scn, set(filter(None, parts[2].split("-"))) if len(parts) == 3 else set()
    return found


def jdbc(before: Offset, after: Offset) -> list[PositionPart]:
    """Compare by time and then by id: a query reads what has a later time, or the same and a greater id.

    An offset without one of them is of another mode.
    """
    for member in ("timestamp", "incrementing"):
        if (before.get(member) is None) != (after.get(member) is None):
            return [PositionPart(member, Order.INCOMPARABLE)]
    nanos = [offset.get("timestamp_nanos") for offset in (before, after)]
    time = [("timestamp", numbers), ("timestamp_nanos", numbers if None not in nanos else _same)]
    return in_turn(before, after, [*time, ("incrementing", numbers)], grows=True)


def mongodb(before: Offset, after: Offset) -> list[PositionPart]:
    """Compare by the cluster time in the resume tokens, else by `sec` and `ord`.

    Two tokens of one time have no order that MongoDB promises.
    """
    tokens = before.get("resume_token"), after.get("resume_token")
    member = "sec" if tokens == (None, None) else "resume_token"
    times = [
        _time_of(_token_data(token)) if token is not None else _operation_time(offset)
        for token, offset in zip(tokens, (before, after), strict=True)
    ]
    return _by_time(member, times, is_same=tokens[0] == tokens[1] and (tokens[0] is not None or times[0] == times[1]))


def mongodb_kafka(before: Offset, after: Offset) -> list[PositionPart]:
    """Compare by the cluster time in the resume tokens of MongoDB's own connector."""
    ids = before.get("_id"), after.get("_id")
    times = [_time_of(_json_data(token)) for token in ids]
    return _by_time("_id", times, is_same=ids[0] == ids[1])


def _by_time(member: str, times: Sequence[tuple[int, ...] | None], *, is_same: bool) -> list[PositionPart]:
    if is_same:
        return []
    old, new = times
    if old is None or new is None or old == new:
        return [PositionPart(member, Order.INCOMPARABLE)]
    return [PositionPart(member, _ordered(old, new))]


def _operation_time(offset: Offset) -> tuple[int, ...] | None:
    sec, inc = _number(offset.get("sec")), _number(offset.get("ord"))
    return None if sec is None or inc is None or sec < 0 else (sec, inc)


_STRING = b"\x02_data\x00"
_TIME = re.compile(r"82([0-9a-f]{8})([0-9a-f]{8})", re.IGNORECASE)
_TIMESTAMP_BYTES = 18


def _token_data(token: object) -> object:
    """Return `_data` of a token: Debezium stores the BSON document in base64, older versions the text itself."""
    if not isinstance(token, str) or _TIME.match(token):
        return token
    try:
        document = base64.b64decode(token, validate=True)
    except (binascii.Error, ValueError):
        return None
    data = document[4 + len(_STRING) + 4 :] if document[4:].startswith(_STRING) else b""
    return data[:_TIMESTAMP_BYTES].decode("ascii", "replace")


def _json_data(text: object) -> object:
    try:
        token = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
    return token.get("_data") if isinstance(token, dict) else None


def _time_of(data: object) -> tuple[int, ...] | None:
    """Return the seconds and the counter at the beginning of a token's `_data` (ResumeTokens.getTimestamp)."""
    found = _TIME.match(data) if isinstance(data, str) else None
    return (int(found[1], 16), int(found[2], 16)) if found else None


def lenses_storage(before: Offset, after: Offset) -> list[PositionPart]:
    """Compare by the line in one object; objects are read by name or by time, and the offset does not say which."""
    return in_turn(before, after, [("path", _same), ("line", numbers)], grows=False)
