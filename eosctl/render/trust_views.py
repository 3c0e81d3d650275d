"""How `eosctl history` and `eosctl profile` look as text."""

from __future__ import annotations

from eosctl.render.cells import Column, View

_VALUES = (Column("NAME", "name"), Column("VALUE", "value"))
TRUST_VIEWS = {
    "history": View(
        (
            Column("TIME", "time"),
            Column("USER", "user"),
            Column("COMMAND", "command"),
            Column("GROUP", "target.group_id"),
            Column(
                "OVERRIDES",
                lambda row: list(overrides) if isinstance(overrides := row.get("overrides"), dict) else None,
            ),
            Column("OUTCOME", "outcome"),
            Column("EXIT", "exit_code"),
            Column("UNDO", "undo"),
        ),
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
