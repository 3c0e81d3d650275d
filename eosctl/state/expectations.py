"""Compares a profile's expectations (`expect.kafka_cluster_id`, `expect.group_id`) to what was found."""

from __future__ import annotations

from collections.abc import Mapping

from eosctl.errors import RefusedError

_MEANING = {
    "kafka_cluster_id": ("the Kafka cluster", "Check the bootstrap servers"),
    "group_id": ("the Connect group", "Check the group id (-g)"),
}


def require_expected(expect: Mapping[str, str], found: Mapping[str, object]) -> None:
    """Raise RefusedError, with both ids, unless `found` has every id of `expect`; an unknown id is not equal.

    The expected mode is not checked here, as an upgrade changes it.
    """
    for name, (what, check) in _MEANING.items():
        wanted = expect.get(name)
        if wanted is not None and found.get(name) != wanted:
            actual = f"is {found[name]}" if found.get(name) else "is not known here"
            raise RefusedError(
                f"{what} {actual}, and the profile expects {wanted}; nothing was written",
                hint=f"{check}, or expect.{name} of the profile: eosctl profile show --origin",
            )
