"""`eosctl metrics` on a worker with jmx_exporter's agent: its names, its page, and a task that commits."""

from __future__ import annotations

from typing import Any

import pytest

from eosctl.sandbox.stack import Stack
from tests.conftest import Invoke
from tests.sandbox_fixtures import FileSource, wait_until

pytestmark = pytest.mark.live
SIZES = ("min", "avg", "max")


def test_a_file_source_shows_the_size_of_its_transactions(
    invoke: Invoke, stack: Stack, file_source: FileSource, target_flags: list[str]
) -> None:
    (worker,) = stack.state.of_kind("worker")
    assert worker.metrics_url is not None
    line = ["metrics", "--prometheus", worker.metrics_url, "--connector", file_source.name, *target_flags, "-o", "json"]

    def committed() -> Any:
        """The row of the task as soon as it has committed something; more is written until then.

        The worker tells one number after the other: a commit between two of them makes a row that does not fit.
        """
        file_source.append("a line")
        rows = invoke(*line).json()["data"]["rows"]
        return next((row for row in rows if fits(*(row[f"transaction_size_{each}"] for each in SIZES))), None)

    def fits(*sizes: float | None) -> bool:
        told = [size for size in sizes if size is not None]
        return len(told) == len(SIZES) and told[0] >= 1 and told == sorted(told)

    file_source.put()
    row = wait_until(committed, what="a transaction in the worker's metrics")
    assert row["task"] == 0
    assert row["source_record_write_rate"] > 0
    assert row["transaction_timeout_ms"] == 60_000
