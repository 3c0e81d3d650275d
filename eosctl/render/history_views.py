"""How `eosctl history` looks as text."""

from __future__ import annotations

from eosctl.render.cells import Column, View

HISTORY_VIEWS = {
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
}
