"""Plans the writes of `offsets switch` for a connector whose config names Kafka brokers of its own."""

from __future__ import annotations

from eosctl.app import App
from eosctl.connectors.dedicated import OtherCluster
from eosctl.core.allowances import NOTHING_WAIVED
from eosctl.core.offsets.names import GLOBAL
from eosctl.offsets.stores.own import refuse_unfit_targets
from eosctl.offsets.switch.elsewhere import stores_elsewhere
from eosctl.offsets.switch.takeover import plan_takeover
from eosctl.offsets.write_rows import SWITCH
from eosctl.offsets.writes import OffsetWritePlan, refuse_hidden, refuse_hidden_in_target, write_plan


def plan_merge_elsewhere(
    app: App,
    at: OtherCluster,
    connector: str,
    origin: str,
    target: str,
    *,
    deletions: bool = True,
    settled: bool = False,
) -> OffsetWritePlan:
    """Plan what the target topic on that cluster lacks: the offsets in use there, else those of the global store here.

    `settled`: refuse while an open transaction hides offsets.
    """
    with at.with_topics(app).topics() as topics:
        refuse_unfit_targets(app, topics, [target], configs={})
    found, documented = stores_elsewhere(app, at, origin, target)
    in_use = found.stores[app.target.offset_topic if origin == GLOBAL else origin].of(connector)
    following, fallback = found.stores[target].of(connector), documented.of(connector)
    if settled:
        refuse_hidden(app, connector, stores=[in_use, documented])
        refuse_hidden_in_target(app, connector, following, written=in_use.records)
    writes = plan_takeover(in_use, following, connector, fallback=fallback, deletions=deletions)
    return write_plan(SWITCH, writes, found, allowances=NOTHING_WAIVED)
