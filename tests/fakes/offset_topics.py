"""Worlds for operations on offsets: two offsets topics, and a connector that is stopped."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eosctl.app import App
from tests.fakes.world import OFFSETS, World

GLOBAL, OWN, WORKER = OFFSETS, "own", "http://worker:8083"
IN_OWN = {"offsets.storage.topic": OWN}
A, B = b'["c",{"f":"a"}]', b'["c",{"f":"b"}]'


@dataclass
class OffsetWorld(World):
    """One worker, of group `connect`."""

    modes: dict[str, str] = field(default_factory=lambda: {WORKER: "enabled"})
    cluster_id: str = "memory-cluster"
    group_id: str = "connect"

    @property
    def flags(self) -> list[str]:
        """The global options that lead here, to the worker too."""
        return ["-b", "memory:9092", "-g", self.group_id, "-u", WORKER]

    def app(self, state_dir: Path | None = None, *, timeout_s: float = 5.0, **target: Any) -> App:
        """An App that names the worker."""
        return super().app(state_dir, timeout_s=timeout_s, **{"connect_urls": (WORKER,), **target})


def merge_world() -> OffsetWorld:
    """Connector c, STOPPED: a merge into its topic OWN writes A there, and deletes B."""
    world = OffsetWorld(group_id="g")
    world.topics.add_topic(GLOBAL, 5)
    world.topics.add_topic(OWN, 5)
    world.topics.put(OWN, B, b"2")
    world.topics.put(GLOBAL, A, b"1")
    world.topics.put(GLOBAL, B, None)
    world.connect.add("c", IN_OWN, state="STOPPED")
    return world
