"""Which Connect groups a Kafka cluster has, said to whoever names one that it does not have. Reads only."""

from __future__ import annotations

from eosctl.core.group_protocol import PROTOCOL_TYPE
from eosctl.errors import EosctlError, NotFoundError
from eosctl.ops.app import App


def with_groups_there(app: App, error: NotFoundError) -> NotFoundError:
    """The same about the target's group, with the groups that exist as a hint; unchanged where nobody lists them."""
    from eosctl.core.absent_group import groups_there  # most commands meet no absent group

    try:
        with app.transactions() as admin:
            listed = admin.list_groups()
    except EosctlError:
        return error
    groups = [name for name, kind in listed.items() if kind == PROTOCOL_TYPE]
    said = groups_there(app.target.require_group_id(), groups, app.target.require_client().bootstrap_servers)
    return NotFoundError(error.message, hint=f"{said} {error.hint or ''}".rstrip())
