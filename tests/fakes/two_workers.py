"""A Connect group of two workers in memory, in two modes."""

from __future__ import annotations

from tests.fakes.world import CONFIGS, World

W0, W1 = "http://w0:8083", "http://w1:8083"


def two_workers() -> World:
    """w0 leads and is enabled, w1 is preparing."""
    made = World({W0: "enabled", W1: "preparing"})
    made.topics.add_topic(CONFIGS)
    return made
