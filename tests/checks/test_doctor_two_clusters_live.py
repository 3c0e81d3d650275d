"""`doctor --with PROFILE` on real workers: one connector in two groups of one Kafka cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eosctl.sandbox.settings import GroupSpec
from eosctl.sandbox.stack import Stack
from tests.conftest import Invoke
from tests.sandbox_fixtures import FileSource, added_group, group_flags, rest, wait_until

pytestmark = pytest.mark.live


def test_a_connector_that_runs_in_two_groups_and_then_in_one(
    stack: Stack, file_source: FileSource, invoke: Invoke, target_flags: list[str], unique: str, tmp_path: Path
) -> None:
    """Each reads every line, and no transaction shows it: the groups have ids of their own."""
    other = f"other-{unique}"
    file_source.append("one", "two")
    file_source.put()
    file_source.wait_position(8)
    with added_group(stack, GroupSpec(other)) as (url,):
        there = FileSource(url, file_source.name, file_source.path, file_source.topic)
        there.put()
        there.wait_position(8)
        flags = group_flags(stack, other)
        profile = {"bootstrap_server": flags[1], "group_id": other, "config_topic": flags[5], "offset_topic": flags[7]}
        lines = [f"    {name}: '{value}'" for name, value in profile.items()]
        config = tmp_path / "config.yaml"
        config.write_text("\n".join(["profiles:", "  moved:", *lines, f"    connect_url: ['{url}']", ""]))
        config.chmod(0o600)

        def told() -> dict[str, Any]:
            words = ["doctor", "--config", str(config), *target_flags, "--with", "moved", "--no-validate", "-o", "json"]
            rows = invoke(*words).json()["data"]["rows"]
            return {row["code"]: row for row in rows if row["subject"] == file_source.name}

        both = told()["may_run_on_two_clusters"]
        shared = both["evidence"]["shared_source_partitions"]
        assert (both["severity"], shared) == ("warning", 1), "a file may be another one on each machine"
        there.stop_and_wait()
        wait_until(lambda: "on_two_clusters" in told(), what="the other one to rest")
        assert "may_run_on_two_clusters" not in told()
        rest(f"{url}/connectors/{there.name}", "DELETE")
        assert told().keys().isdisjoint({"runs_on_two_clusters", "on_two_clusters", "may_run_on_two_clusters"})
    assert "other_group_unseen" in {row["code"] for row in _rows(invoke, config, target_flags)}


def _rows(invoke: Invoke, config: Path, flags: list[str]) -> list[dict[str, Any]]:
    done = invoke("doctor", "--config", str(config), *flags, "--with", "moved", "--no-validate", "-o", "json")
    rows: list[dict[str, Any]] = done.json()["data"]["rows"]
    return rows
