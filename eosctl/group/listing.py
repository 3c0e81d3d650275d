"""Lists the Connect groups of a Kafka cluster, also as a hint for a group that does not exist. Reads only."""

from __future__ import annotations

from eosctl.app import App
from eosctl.core.transactions import PROTOCOL_TYPE
from eosctl.errors import EosctlError, NotFoundError


def with_existing_groups(app: App, error: NotFoundError) -> NotFoundError:
    """Add the existing groups to the error as a hint, if they can be listed."""
    from eosctl.group.observation.absence import existing_groups_hint  # rarely needed

    try:
        with app.transactions() as admin:
            listed = admin.list_groups()
    except EosctlError:
        return error
    groups = [name for name, kind in listed.items() if kind == PROTOCOL_TYPE]
    existing = existing_groups_hint(
        app.target.require_group_id(), groups, app.target.require_client().bootstrap_servers
    )
    return NotFoundError(error.message, hint=f"{existing} {error.hint or ''}".rstrip())


def list_connect_groups(app: App) -> tuple[frozenset[str] | None, str, EosctlError | None]:
    """Return the Connect groups of this Kafka cluster that one may see, and its id; or why they are unknown."""
    try:
        with app.transactions() as admin:
            listed = admin.list_groups()
            cluster_id = admin.cluster_id()  # which has come with the groups
    except EosctlError as error:
        return None, "", error
    return frozenset(group_id for group_id, kind in listed.items() if kind == PROTOCOL_TYPE), cluster_id, None
