"""How long a connector's transactions may take, and what ends them by the clock."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from eosctl.group.observation.rules import WorkerFile
from eosctl.observation.connectors.rules import interval
from eosctl.observation.connectors.settings import transaction_timeout
from tests.group.observations import FLUSHED, SOURCE, good
from tests.observation.rule_cases import TIMEOUT, configured, file, found


@pytest.mark.parametrize(
    ("config", "files", "expected"),
    [
        ({}, (), 60_000),
        ({}, (file(**{"producer.transaction.timeout.ms": "5"}),), 5),
        ({TIMEOUT: "7"}, (file(**{"producer.transaction.timeout.ms": "5"}),), 7),
        ({TIMEOUT: "soon"}, (), None),
        ({}, (file(**{"producer.transaction.timeout.ms": "5"}), file()), None),
    ],
)
def test_the_transaction_timeout_of_a_connector(
    config: dict[str, str], files: tuple[WorkerFile, ...], expected: int | None
) -> None:
    assert transaction_timeout(replace(SOURCE, config=config), replace(good(), files=files)).number == expected


@pytest.mark.parametrize(
    ("worker_ms", "own_ms", "limit_ms", "late"),
    [
        (None, None, "60001", False),
        (None, None, "60000", True),
        ("10000", None, "10001", False),
        ("10000", None, "10000", True),
        ("10000", "20000", "20000", True),
        ("20000", "10000", "20000", False),
    ],
)
def test_a_transaction_that_the_clock_ends_must_end_before_it_times_out(
    worker_ms: str | None, own_ms: str | None, limit_ms: str, late: bool
) -> None:
    own = {} if own_ms is None else {"transaction.boundary.interval.ms": own_ms}
    config = {"transaction.boundary": "interval", TIMEOUT: limit_ms, **own}
    files = () if worker_ms is None else (replace(FLUSHED, properties={"offset.flush.interval.ms": worker_ms}),)
    seen = replace(good(), files=files, **configured(**config))
    assert bool(found(interval, seen)) is late
