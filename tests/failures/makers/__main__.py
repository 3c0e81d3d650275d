"""`python3 -m tests.failures.makers FOLDER [MAKER:VERSION ...]` makes traces anew, each on sandboxes of its own."""

from __future__ import annotations

import sys
import tempfile
import traceback
from pathlib import Path

from tests.failures.makers import clients, flink, incidents, workers
from tests.failures.makers.ground import Traces

MAKERS = {
    made.__name__: made
    for made in (
        clients.late_requests,
        clients.unstable_offsets,
        clients.stale_coordinator_epoch,
        clients.streams_without_a_transaction_log,
        clients.moved_coordinators,
        flink.flink,
        workers.fencing,
        workers.unreachable_leader,
        workers.config_topic,
        workers.ghost,
        workers.races,
        workers.idle_fenced,
        workers.mirror_maker_nodes,
        incidents.missing_plugin,
        incidents.settings_and_clocks,
        incidents.partitioned_config_topic,
        incidents.wrong_password,
        incidents.wrong_time,
        incidents.full_disk,
        incidents.closed_forcefully,
        incidents.old_plugin,
    )
}


def main(folder: Path, wanted: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for each in wanted:
        name, _, version = each.partition(":")
        with tempfile.TemporaryDirectory() as scratch:
            try:
                MAKERS[name](Traces(folder, [Path(scratch)]), Path(scratch), version)
            except Exception:
                traceback.print_exc()


main(Path(sys.argv[1]), sys.argv[2:])
