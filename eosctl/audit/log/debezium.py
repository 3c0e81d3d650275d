"""Unique values in Debezium's change events, as its JSON has them. Pure.

MySQL and MariaDB (Debezium's binlog connectors): the position of an event in the binlog, and the row in the event. An
UPDATE of a primary key is a delete and a create of one row, so the operation belongs to it.
PostgreSQL: the LSN of a change, which all rows of one COPY may share: with the key, else with the counter of events in
the transaction (`provide.transaction.metadata`). `source.sequence` depends on when the connector started.
Snapshots: the key of a row, in its table. Whoever asks for a second snapshot gets the rows again.

Where that is not unique after all, the rows differ: the events of a compressed transaction of MySQL's may have one
position (`binlog_transaction_compression`), a key may be that of an index with NULLs.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum, unique

from msgspec import Struct

from eosctl.audit.log.field_paths import ReadValue, member_of, read_json
from eosctl.core.records import Record


@unique
class Database(StrEnum):
    """The database of a Debezium connector, by the shortest name of its class."""

    POSTGRES = "Postgres"
    MYSQL = "MySql"
    MARIADB = "MariaDb"


_TABLE = ("db", "schema", "table")
_STREAMED = (None, False, "false")
_INCREMENTAL = "incremental"


class ChangeEvents(Struct, frozen=True):
    """The position of each change event; `has_keys`: the record's key is that of the row.

    `snapshots_once`: nothing in the connector's config lets it take a second snapshot.
    """

    database: Database
    has_keys: bool
    snapshots_once: bool

    def __str__(self) -> str:
        position = "source.gtid, source.file, source.pos, source.row and op of each change"
        if self.database is Database.POSTGRES:
            position = "source.lsn of each change, with op and key, else with transaction.total_order"
        return f"{position}; table and key of each snapshot row"

    def passes(self, record: Record) -> bool:
        """Return whether it is a tombstone: it follows a delete, and says nothing more."""
        return record.value is None

    def read(self, record: Record) -> ReadValue | None:
        """Return the unique value of a change event; None where there is none."""
        event = read_json(record.value or b"")
        source, op = member_of(event, "source"), member_of(event, "op")
        if not isinstance(event, Mapping) or not isinstance(source, Mapping) or not isinstance(op, str):
            return None
        key = None if record.key is None else read_json(record.key)
        row = (key, event.get("before"), event.get("after"))
        snapshot = source.get("snapshot")
        if snapshot not in _STREAMED:
            if not self.has_keys or key is None:
                return None
            may_repeat = snapshot == _INCREMENTAL or not self.snapshots_once
            return ReadValue(("snapshot", *map(source.get, _TABLE), key), row, may_repeat)
        if self.database is not Database.POSTGRES:
            position = (source.get("file"), source.get("pos"), source.get("row"))
            if None in position:
                return None
            return ReadValue((source.get("gtid"), *position, op), row)
        lsn, order = source.get("lsn"), member_of(event, "transaction", "total_order")
        if lsn is not None and self.has_keys and key is not None:
            return ReadValue((lsn, op, key), row)
        return None if lsn is None or order is None else ReadValue((lsn, order), row)
