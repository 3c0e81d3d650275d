"""What the gates about workers say of a dedicated MirrorMaker, of old and unknown versions, and of files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from eosctl.core.workers.modes import Mode
from eosctl.group.observation.rules import Observation, WorkerFile
from eosctl.upgrade.gate import (
    GateVerdict,
    internal_rest,
    members_known,
    modes_proven,
    worker_files,
    worker_health,
    worker_versions,
)
from tests.group.observations import good, worker

W, N1, N2 = "http://w0:8083", "10.0.0.1", "10.0.0.2"
NODES = tuple(replace(worker(version=None), name=name) for name in (N1, N2))
NO_LEADER = "reach no leader: exactly-once tasks of all but the leader fail (their REST interface is off)"


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, GateVerdict("followers reach their leader")),
        ({"workers": (worker(), worker()), "mirror_maker": True}, GateVerdict("followers reach their leader")),
        ({"workers": NODES}, GateVerdict("followers reach their leader")),
        ({"workers": NODES[:1], "mirror_maker": True}, GateVerdict("there is no follower")),
        ({"workers": NODES, "mirror_maker": True}, GateVerdict(failures=[f"{N1}, {N2} {NO_LEADER}"])),
    ],
)
def test_only_nodes_without_rest_do_not_reach_their_leader(changes: dict[str, Any], verdict: GateVerdict) -> None:
    assert internal_rest(replace(good(), **changes)) == verdict


@pytest.mark.parametrize(
    ("gate", "changes", "proof"),
    [
        (members_known, {"workers": NODES, "mirror_maker": True}, "2 members, without a REST interface"),
        (modes_proven, {"workers": (worker(confirmed=False),)}, f"{W} may be disabled"),
        (
            worker_health,
            {"workers": (worker(health="unknown", version="9-acme", mode=Mode.NOT_ENABLED),)},
            f"every worker answers; Kafka reports health from 3.9 on, so not {W}, which runs 9-acme "
            "(of an unknown distribution)",
        ),
    ],
)
def test_what_is_proven(gate: Callable[[Observation], GateVerdict], changes: dict[str, Any], proof: str) -> None:
    assert gate(replace(good(), **changes)).proof == proof


def test_a_version_that_is_known_needs_no_mode() -> None:
    seen = replace(good(), workers=(worker(mode=Mode.UNKNOWN),))
    assert worker_versions(seen) == GateVerdict("versions: 4.3.1", [], [])


def test_a_reference_beside_a_value_is_not_known_to_agree() -> None:
    """Two different values differ, whatever a third file refers to."""
    files = tuple(WorkerFile(f"w{at}", {"group.id": each}) for at, each in enumerate(("g", "${env:G}", "h")))
    assert worker_files(replace(good(), files=files[:2])).unknowns == ["group.id: only workers can resolve ${env:G}"]
    assert worker_files(replace(good(), files=files)).failures == ["group.id differs: ${env:G}, g, h"]
