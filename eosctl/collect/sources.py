"""The table of sources: each with its look, its interval and its longest time."""

from __future__ import annotations

from collections.abc import Sequence

from eosctl.checks.ignored import IgnoredFinding
from eosctl.collect.looks.doctor import DoctorLook
from eosctl.collect.looks.group import ConnectGroupLook
from eosctl.collect.looks.hanging import look_for_hanging
from eosctl.collect.looks.kafka import look_at_kafka
from eosctl.collect.looks.offsets import OffsetsLook
from eosctl.collect.looks.topics import TopicsLook
from eosctl.collect.looks.transactions import TransactionLook
from eosctl.collect.source import FactSource

KAFKA = "kafka"
SOURCE_NAMES = (KAFKA, "transactions", "hanging", "group", "topics", "offsets", "doctor")


def sources(*, ignore: Sequence[IgnoredFinding] = ()) -> tuple[FactSource, ...]:
    """Make fresh sources for one collector, as each remembers what it saw. `ignore`: as for `doctor`."""
    return (
        FactSource(KAFKA, look_at_kafka),
        FactSource("transactions", TransactionLook(), after=True),
        FactSource("hanging", look_for_hanging, every=4, deadline_s=60.0),
        FactSource("group", ConnectGroupLook(), every=2, deadline_s=40.0),
        FactSource("topics", TopicsLook(), deadline_s=40.0),
        FactSource("offsets", OffsetsLook(), deadline_s=300.0, after=True),
        FactSource("doctor", DoctorLook(tuple(ignore)), every=20, deadline_s=120.0, last=True, after=True),
    )
