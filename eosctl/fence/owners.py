"""The owners of the ids that are to be fenced."""

from __future__ import annotations

from collections.abc import Mapping

from eosctl.app import App
from eosctl.core.ids import Owner, TransactionalId
from eosctl.fence.gather import Gathered
from eosctl.fence.liveness import Liveness
from eosctl.txn.owners import owners_of_ids


def owners_of(app: App, gathered: Gathered, liveness: Liveness) -> Mapping[TransactionalId, Owner]:
    """Return the owner of each id: as given by `--connector`, else as known, else as the id's form suggests."""
    given = {each: owner for each, owner in gathered.connector_of.items() if owner}
    asked = [each for each in gathered.ids if each not in given]
    found = owners_of_ids(
        app, asked, connectors=gathered.connectors, running=liveness.connectors, groups=liveness.groups
    )
    return {**found, **given}
