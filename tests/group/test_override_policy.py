"""Which overrides workers allow connectors, by the workers' files, and what is said where they refuse some."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from eosctl.fence.connect import cure_of
from eosctl.group.observation.holders import ALLOWLIST, POLICY, override_policy, policy_of, refused_overrides
from eosctl.group.observation.rules import Observation, WorkerFile
from eosctl.observation.connectors.rules import fencing_pace, group_findings, interval
from eosctl.upgrade.gates import evaluate_gates
from tests.group.observations import ENABLED, INTERVAL, good, source, worker

TIMEOUT = "producer.override.transaction.timeout.ms"
SASL = "admin.override.sasl.jaas.config"
NONE = "org.apache.kafka.connect.connector.policy.NoneConnectorClientConfigOverridePolicy"


def group(config: dict[str, str], *files: dict[str, str], **changes: Any) -> Observation:
    made = tuple(WorkerFile(f"w{at}", each) for at, each in enumerate(files))
    return replace(good(), connectors=source(config=config), files=made, **changes)


@pytest.mark.parametrize(
    ("files", "version", "refused"),
    [
        ([], "4.3.1", []),
        ([{}], "4.3.1", []),
        ([{}], "2.8.0", [TIMEOUT, SASL]),
        ([{}], "5.0.0", [TIMEOUT, SASL]),
        ([{POLICY: "All"}], "5.0.0", []),
        ([{POLICY: "none"}], "4.3.1", [TIMEOUT, SASL]),
        ([{POLICY: NONE}], "4.3.1", [TIMEOUT, SASL]),
        ([{POLICY: "Principal"}], "4.3.1", [TIMEOUT]),
        ([{POLICY: "Allowlist", ALLOWLIST: "acks, transaction.timeout.ms"}], "4.3.1", [SASL]),
        ([{POLICY: "com.acme.Strict"}], "4.3.1", []),
        ([{POLICY: "${env:POLICY}"}], "4.3.1", []),
        ([{POLICY: "None"}, {POLICY: "All"}], "4.3.1", []),
    ],
)
def test_what_workers_refuse(files: list[dict[str, str]], version: str, refused: list[str]) -> None:
    """Every gate passed, and the connector did not start on the workers that were restarted."""
    seen = group({TIMEOUT: "70000", SASL: "x", "tasks.max": "1"}, *files, workers=(worker(version=version),))
    found = list(refused_overrides((seen.connectors or ())[0], seen))
    assert [each.evidence["refused"] for each in found] == ([refused] if refused else [])
    gate = next(each for each in evaluate_gates(seen) if each.id == "client_overrides")
    assert gate.status == ("fail" if refused else "pass")


def test_hints_name_what_the_policy_allows() -> None:
    """They gave overrides that the workers refuse."""
    strict = {POLICY: "None"}
    seen = group(INTERVAL | {"transaction.boundary.interval.ms": "60000"}, strict, crowding={"c": 91})
    [connector] = seen.connectors or ()
    [late], [slow] = interval(connector, seen), fencing_pace(connector, seen)
    assert late.fix.startswith("Raise producer.transaction.timeout.ms in the workers' files")
    assert "admin.retry.backoff.ms=10 and admin.retry.backoff.max.ms=10 in the workers' files" in slow.fix
    free = replace(seen, files=())
    [late], [slow] = interval(connector, free), fencing_pace(connector, free)
    assert late.fix.startswith(f"Raise {TIMEOUT} above")
    assert "admin.override.retry.backoff.ms=10" in slow.fix
    assert policy_of(free) is None


def test_the_cure_of_rescue_is_one_that_workers_take() -> None:
    assert set(cure_of(override_policy([{POLICY: "None"}]))) == {"admin.retry.backoff.ms", "admin.retry.backoff.max.ms"}
    allowing = {POLICY: "Allowlist", ALLOWLIST: "retry.backoff.ms,retry.backoff.max.ms"}
    assert all(name.startswith("admin.override.") for name in cure_of(override_policy([allowing])))


def test_a_flush_timeout_is_said_to_be_ignored() -> None:
    file = {"offset.flush.timeout.ms": "60000"}
    assert group_findings(group({}, file)) == [], "disabled workers do look at it"
    [finding] = group_findings(group({}, file, workers=ENABLED))
    assert (finding.code, finding.severity, finding.subject) == ("override_ignored", "info", "w0")
    assert "offset.flush.timeout.ms=60000 has no effect on exactly-once tasks" in finding.message
