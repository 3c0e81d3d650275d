"""The names of connectors that a mistyped one may have meant."""

from __future__ import annotations

from eosctl.connectors.look import unknown_connector


def test_the_nearest_names_come_first_and_ten_are_enough() -> None:
    """The hint sent people to `offsets list`, which knows no sink, or to `workers list`, which knows no connector."""
    known = [*(f"sink-{number:02}" for number in range(12)), "orders"]
    hint = str(unknown_connector("there is no connector order", "order", known).hint)
    assert hint.startswith("Names are case-sensitive. Connectors of the group: orders, ")
    assert hint.endswith(" and 3 more.")
    assert unknown_connector("none", "order", []).hint == "The group has no connector."
