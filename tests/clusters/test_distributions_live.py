"""Workers that say a distribution's version: the jars are Kafka 3.3's, `kafka-version.properties` is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eosctl.sandbox.settings import GroupSpec
from eosctl.sandbox.stack import Stack
from tests.conftest import Invoke
from tests.sandbox_fixtures import added_group, group_flags, wait_until

pytestmark = pytest.mark.live


def options(version: str, folder: Path) -> tuple[str, ...]:
    """The boot class path comes before Kafka's jars, of which AppInfoParser takes the first that it finds."""
    said = folder / "kafka" / "kafka-version.properties"
    said.parent.mkdir()
    said.write_text(f"version={version}\ncommitId=0123456789abcdef\n", encoding="ascii")
    return (f"-Xbootclasspath/a:{folder}",)


@pytest.mark.parametrize(
    ("version", "shown"),
    [
        ("7.3.3-ccs", "7.3.3-ccs (Kafka 3.3)"),
        pytest.param("7.2.9-ce", "7.2.9-ce (Kafka 3.2)", marks=pytest.mark.slow),
        pytest.param("3.3.2-acme", "3.3.2-acme (of an unknown distribution)", marks=pytest.mark.slow),
    ],
)
def test_the_version_of_a_distribution(
    oldest_stack: Stack, invoke: Invoke, unique: str, tmp_path: Path, version: str, shown: str
) -> None:
    """`7.3.3-ccs` was Kafka 7.3, whose missing /health meant `starting` for ever: plan and doctor exited with 3."""
    group = GroupSpec(unique, jvm_options=options(version, tmp_path))
    with added_group(oldest_stack, group) as (url,):
        where = [*group_flags(oldest_stack, unique), "-u", url, "-o", "json"]

        def worker() -> Any:
            [row] = invoke("workers", "probe", *where).json()["data"]["rows"]
            return row

        wait_until(lambda: worker()["mode"] == "enabled", what="a worker that answers")
        assert (worker()["version"], worker()["health"]) == (version, "unknown")
        planned = invoke("upgrade", "plan", "--to", "preparing", *where).json()["data"]
        gates = {gate["id"]: gate for gate in planned["gates"]}
        is_too_old = "Kafka 3.2" in shown
        assert gates["worker_versions"]["status"] == ("fail" if is_too_old else "pass")
        assert shown in gates["worker_versions"]["evidence"]
        assert gates["worker_health"]["status"] == "pass"
