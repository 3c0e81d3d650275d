"""The exporter on real brokers and workers: what it sees of a task, and that a worker that hangs holds up nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from eosctl.app import App
from eosctl.collect.collector import Collector
from eosctl.collect.looks import sources
from eosctl.core.clients.settings import ClientSettings
from eosctl.deadline import Clock, Deadline
from eosctl.exporter.metrics import expose
from eosctl.sandbox.stack import Stack
from eosctl.target import Target
from tests.sandbox_fixtures import GROUP, FileSource, frozen, wait_until

pytestmark = pytest.mark.live


@contextmanager
def collecting(stack: Stack, group_id: str = GROUP) -> Iterator[Collector]:
    """Each second, and nothing that is given but brokers and group."""
    clock = Clock()
    app = App(
        Target(ClientSettings((stack.bootstrap_servers,)), group_id=group_id),
        Deadline.after(60.0, clock),
        stack.directory,
        clock,
    )
    with Collector(app, sources(), interval_s=1.0) as collector:
        yield collector


def value(collector: Collector, series: str) -> float | None:
    """The value of one series as it is scraped now."""
    text = expose(collector.overview, "")[0].decode()
    found = re.search(rf"(?m)^{re.escape(series)} (\S+)$", text)
    return None if found is None else float(found[1])


def test_a_running_task_and_its_offset(stack: Stack, file_source: FileSource) -> None:
    """Its series come with it, and go when it is deleted."""
    file_source.append("one")
    file_source.put()
    file_source.wait_running()
    running = f'eosctl_connector_tasks_running{{connector="{file_source.name}"}}'
    age = f'eosctl_source_offset_age_seconds{{connector="{file_source.name}"}}'
    with collecting(stack) as collector:
        wait_until(lambda: value(collector, running) == 1.0, what="the task to be seen")
        wait_until(lambda: (value(collector, age) or 99.0) < 60.0, what="its offset to be seen")
        assert value(collector, "eosctl_up") == 1.0
        assert value(collector, "eosctl_tasks_without_transaction") == 0.0
        file_source.rest(method="DELETE")
        wait_until(lambda: value(collector, running) is None, what="the series to vanish")
        assert value(collector, age) is None


def test_a_frozen_worker_holds_up_nothing(stack: Stack) -> None:
    """It takes requests and is silent: the others go on, and it is up again when it goes on."""
    (url, *_others) = stack.urls(GROUP)
    up = f'eosctl_worker_up{{worker="{url}"}}'
    looks = 'eosctl_collections_total{source="transactions"}'
    group = 'eosctl_collection_success{source="group"}'
    with collecting(stack) as collector:
        wait_until(lambda: value(collector, up) == 1.0, what="the worker to be seen")
        with frozen(stack, url):
            before = value(collector, looks) or 0.0
            wait_until(lambda: (value(collector, looks) or 0.0) > before + 3, what="other sources to go on")
            assert value(collector, "eosctl_up") == 1.0
            wait_until(
                lambda: value(collector, up) != 1.0 or value(collector, group) == 0.0, what="the worker to be missed"
            )
        wait_until(lambda: value(collector, up) == 1.0, what="the worker to be seen again")
