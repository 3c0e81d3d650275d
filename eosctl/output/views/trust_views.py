"""How `eosctl history` and `eosctl profile` look as text."""

from __future__ import annotations

from collections.abc import Sequence

from eosctl.output.cells import Column, View
from eosctl.report import Row

_MOST_NAMED = 3
_NOUNS = {
    "connectors": ("connector", "connectors"),
    "transactional_ids": ("id", "ids"),
    "topics": ("topic", "topics"),
    "workers": ("worker", "workers"),
    "principals": ("principal", "principals"),
}


def _touched(row: Row) -> object:
    """`connector orders; ids g-orders-0, g-orders-1; topic connect-offsets`, each with its first few names."""
    touched = row["touched"]
    parts = [_named(kind, touched[kind]) for kind in _NOUNS if kind in touched] if isinstance(touched, dict) else []
    return "; ".join(parts) or None


def _named(kind: str, names: Sequence[str]) -> str:
    one, many = _NOUNS[kind]
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{one if len(names) == 1 else many} {', '.join(names[:_MOST_NAMED])}{more}"


_VALUES = (Column("NAME", "name"), Column("VALUE", "value"))
TRUST_VIEWS = {
    "history": View(
        (
            Column("TIME", "time"),
            Column("USER", "user"),
            Column("COMMAND", "command"),
            Column("GROUP", "target.group_id"),
            Column("TOUCHED", _touched),
            Column(
                "OVERRIDES",
                lambda row: list(overrides) if isinstance(overrides := row.get("overrides"), dict) else None,
            ),
            Column("OUTCOME", "outcome"),
            Column("EXIT", "exit_code"),
            Column("UNDO", "undo"),
        ),
        wide=(Column("ERROR", "error.message"),),
        empty="Nothing was written so far.",
    ),
    "profile-list": View(
        (
            Column("PROFILE", "profile"),
            Column("CURRENT", "current"),
            Column("BOOTSTRAP-SERVER", "bootstrap_server"),
            Column("GROUP", "group_id"),
            Column("CONNECT-URLS", "connect_urls"),
            Column("EXPECTED-CLUSTER", "expect.kafka_cluster_id"),
        ),
        empty="There is no profile. Make one: eosctl profile set NAME bootstrap_server=HOST:PORT",
    ),
    "profile-show": View(_VALUES),
    "profile-origins": View((*_VALUES, Column("ORIGIN", "origin"))),
    "profile-file": View(_VALUES),
    "profile-check": View(
        (
            Column("CHECK", "check"),
            Column("SUBJECT", "subject"),
            Column("STATUS", "status"),
            Column("FOUND", "found"),
            Column("REASON", "reason"),
        )
    ),
}
