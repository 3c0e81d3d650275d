"""A group for `eosctl doctor` to look at, and what it finds there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eosctl.core.records import TopicDescription
from eosctl.core.transaction_log import TOPIC as TRANSACTION_LOG
from tests.envelope import envelope_of
from tests.fakes.config_topic import CONFIG_TOPIC, config_records, created
from tests.fakes.config_world import ConfigWorld, compacted

if TYPE_CHECKING:  # programs that tests start import this module: pytest and hypothesis are half of their start
    from tests.conftest import Invoke, Outcome

WHERE = ("-b", "localhost:1", "-g", "g")
W1, W2 = "http://w1:8083", "http://w2:8083"
OFFSETS = "connect-offsets"
PREFIXES = ("producer.", "consumer.", "admin.")
HEALTHY = [("acls", "acls_not_checked", "info")]


def transaction_topic(*, replicas: int = 3, least: int = 2) -> TopicDescription:
    """The coordinators' own log, as brokers make it."""
    config = {"cleanup.policy": "compact", "min.insync.replicas": str(least)}
    return TopicDescription(TRANSACTION_LOG, "id", 50, replicas, config)


def cluster(**changes: Any) -> ConfigWorld:
    """An enabled worker that runs one good source connector."""
    values: dict[str, Any] = {
        "records": config_records(*created("orders", 1, record=1)),
        "described": [compacted(CONFIG_TOPIC, 1), compacted(OFFSETS, 25), transaction_topic()],
        "connectors": {"orders": "source"},
        "modes": {W1: "enabled"},
    }
    return ConfigWorld(**{**values, **changes})


def later(there: ConfigWorld, seconds: float) -> None:
    """Make it so long after the newest record of the topics."""
    newest_ms = max(record.timestamp_ms for topic in there.topics.topics for record in there.topics.records(topic))
    there.time.now_s = newest_ms / 1000 + seconds


def doctor(invoke: Invoke, there: ConfigWorld, *more: str) -> Outcome:
    return invoke("doctor", *more, *WHERE, **there.surroundings)


def found(invoke: Invoke, there: ConfigWorld, exit_code: int) -> list[tuple[str, str, str]]:
    document = envelope_of(doctor(invoke, there, "-o", "json"), "doctor", exit_code)
    rows = document["data"]["rows"]
    members = {"check", "code", "severity", "subject", "message", "evidence", "fix"}
    assert all(set(row) >= members for row in rows)
    return [(row["check"], row["code"], row["severity"]) for row in rows]


def write_worker_file(path: Path) -> Path:
    """A worker's file that names the users of the worker and of its clients."""
    login = "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username=w password=p;\n"
    path.write_text(
        "bootstrap.servers=localhost:1\ngroup.id=g\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        + "".join(prefix + login for prefix in ("", "producer.", "consumer.", "admin."))
        + "".join(f"{prefix}security.protocol=SASL_PLAINTEXT\n{prefix}sasl.mechanism=PLAIN\n" for prefix in PREFIXES)
    )
    path.chmod(0o600)
    return path


def row_of(invoke: Invoke, there: ConfigWorld, code: str) -> dict[str, Any]:
    """The one row with that code."""
    rows = doctor(invoke, there, "-o", "json").json()["data"]["rows"]
    [row] = [row for row in rows if row["code"] == code]
    return dict(row)


LOOKS = (
    "workers",
    "txn describe",
    "upgrade plan",
    "task-counts replay",
    "connectors check",
    "connectors trace",
    "acls check",
)
"""Commands that show what is found: 3 is no failure of theirs."""


def run_fix(
    invoke: Invoke, there: ConfigWorld, row: Mapping[str, Any], *, until: str = "\0", more: Sequence[str] = ()
) -> list[Outcome]:
    """Runs the commands of a fix as they are printed, one after the other, up to the words `until`."""
    commands = re.findall(r"`eosctl ([^`]*)`", str(row["fix"]).partition(until)[0])
    assert commands, row
    done = []
    for command in commands:
        words = [*shlex.split(command), *(("--via", "topic") if command.startswith("offsets set ") else ())]
        done.append(invoke(*words, *WHERE, "-u", W1, *more, input="y\n", can_ask=True, **there.surroundings))
        fine = (0, 3) if command.startswith(LOOKS) else (0,)
        assert done[-1].exit_code in fine, (command, done[-1].stdout, done[-1].stderr)
    return done
