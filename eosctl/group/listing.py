"""Which Connect groups a Kafka cluster has; said also to whoever names one that it does not have. Reads only."""

from __future__ import annotations

from eosctl.app import App
from eosctl.core.transactions import PROTOCOL_TYPE
from eosctl.errors import EosctlError, NotFoundError


def with_groups_there(app: App, error: NotFoundError) -> NotFoundError:
    """The same about the target's group, with the groups that exist as a hint; unchanged where nobody lists them."""
    from eosctl.group.observation.absence import groups_there  # most commands meet no absent group

    try:
        with app.transactions() as admin:
            listed = admin.list_groups()
    except EosctlError:
        return error
    groups = [name for name, kind in listed.items() if kind == PROTOCOL_TYPE]
    said = groups_there(app.target.require_group_id(), groups, app.target.require_client().bootstrap_servers)
    return NotFoundError(error.message, hint=f"{said} {error.hint or ''}".rstrip())


def list_connect_groups(app: App) -> tuple[frozenset[str] | None, EosctlError | None]:
    """The Connect groups of this Kafka cluster that one may see, or why that is unknown."""
    try:
        with app.transactions() as admin:
            listed = admin.list_groups()
    except EosctlError as error:
        return None, error
    return frozenset(group_id for group_id, kind in listed.items() if kind == PROTOCOL_TYPE), None
