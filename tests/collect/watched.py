"""A cluster that one looks at again and again, half a minute apart."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from eosctl.collect.collector import Collector
from tests.collect.scene import app_of, collector_of, group, source_of
from tests.fakes.config_world import ConfigWorld

Facts = TypeVar("Facts")


class Watched:
    """A group, and a collector that looks at one source of it when it is told to."""

    def __init__(self, tmp_path: Path, **changes: object) -> None:
        self.world: ConfigWorld = group(**changes)
        self.collector: Collector = collector_of(app_of(self.world, tmp_path))

    def look(self, *names: str) -> None:
        """Half a minute later."""
        self.world.time.pass_until(self.world.time.now_s + 30)
        for name in names:
            self.collector.look(source_of(self.collector, name))
            assert self.collector.overview().error(name) is None, self.collector.overview().collected[name].message

    def facts(self, kind: type[Facts]) -> Facts:
        found = self.collector.overview().facts(kind)
        assert found is not None
        return found
