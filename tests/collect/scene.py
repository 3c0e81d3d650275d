"""A group in memory for a collector to look at."""

from __future__ import annotations

from pathlib import Path

from eosctl.app import App
from eosctl.collect.collector import Collector
from eosctl.collect.looks import sources
from eosctl.collect.overview import FactSource
from tests.fakes.config_topic import CONFIG_TOPIC, config_records, created
from tests.fakes.config_world import ConfigWorld
from tests.fakes.doctor_scene import W1, cluster

__all__ = ["CONFIG_TOPIC", "W1", "collector_of", "config_records", "created", "group", "source_of"]


def group(**changes: object) -> ConfigWorld:
    """An enabled worker with one source connector that runs one task."""
    return cluster(**changes)


def collector_of(app: App, *only: str, interval_s: float = 30.0) -> Collector:
    """A collector of all sources, or of these; nothing is looked at yet."""
    return Collector(app, [each for each in sources() if not only or each.name in only], interval_s=interval_s)


def source_of(collector: Collector, name: str) -> FactSource:
    """One of its sources."""
    return next(each for each in collector.sources if each.name == name)


def app_of(world: ConfigWorld, tmp_path: Path) -> App:
    """An App that knows where the group's worker is."""
    return world.app(tmp_path, connect_urls=(W1,))
