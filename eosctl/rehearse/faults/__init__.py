"""All faults, in the order in which they are listed."""

from __future__ import annotations

from eosctl.rehearse.faults.connectors import Reconfigure, RestartTasks, RollWorkers, StopResume, SwitchOffsets
from eosctl.rehearse.faults.fault import (
    BrokerKill,
    BrokerRestart,
    Fault,
    FreezeWorker,
    KillWorker,
    Rebalance,
    SlowNetwork,
)

ALL_FAULTS: tuple[type[Fault], ...] = (
    *(KillWorker, FreezeWorker, RestartTasks, Reconfigure, StopResume, BrokerRestart, BrokerKill),
    *(RollWorkers, SwitchOffsets, SlowNetwork, Rebalance),
)
