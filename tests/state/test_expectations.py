"""A write to another cluster or group than a profile expects is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Invoke
from tests.fakes.transactions import Scene
from tests.state.audit_scene import CLUSTER, FENCE, lines


@pytest.fixture
def expecting(tmp_path: Path) -> Any:
    """The options that choose a profile which expects these ids."""

    def options(**expect: str) -> list[str]:
        config = tmp_path / "config.yaml"
        config.write_text(json.dumps({"profiles": {"p": {"expect": expect}}}), encoding="utf-8")
        return ["--config", str(config), "-p", "p"]

    return options


@pytest.mark.parametrize(
    ("expect", "words"),
    [
        ({"kafka_cluster_id": "other"}, ("the Kafka cluster is fake-cluster-id", "expects other")),
        ({"group_id": "other"}, ("the Connect group is g,", "expects other")),
    ],
)
def test_a_write_to_another_cluster_or_group_is_refused(
    run: Any, stage: Scene, log: Path, expecting: Any, expect: dict[str, str], words: tuple[str, ...]
) -> None:
    done = run(*FENCE, "--live", "--yes", *expecting(**expect))
    assert done.exit_code == 6
    assert all(word in done.stderr for word in words), done.stderr
    assert stage.brokers.count("InitProducerId") == 0
    [entry] = lines(log)
    assert (entry["outcome"], entry["exit_code"], entry["touched"]["transactional_ids"]) == (
        "refused", 6, ["g-orders-0"]
    )  # fmt: skip
    shown = run(*FENCE, "--live", "--dry-run", *expecting(**expect))
    assert shown.exit_code == 0
    assert f"warning: {words[0]}" in shown.stderr


def test_the_expected_cluster_and_group_pass(run: Any, stage: Scene, expecting: Any) -> None:
    done = run(*FENCE, "--live", "--yes", *expecting(kafka_cluster_id=CLUSTER, group_id="g"))
    assert done.exit_code == 0
    assert stage.brokers.count("InitProducerId") == 1


def test_what_is_not_known_is_not_what_is_expected(invoke: Invoke, stage: Scene, expecting: Any) -> None:
    flags = [*stage.flags[:2], *expecting(group_id="g")]
    done = invoke("fence", "g-done-0", "--live", "--yes", *flags, **stage.surroundings)
    assert done.exit_code == 6
    assert "the Connect group is not known here, and the profile expects g" in done.stderr


def test_a_profile_can_expect_two_things_only(invoke: Invoke, expecting: Any) -> None:
    done = invoke("fence", "x", *expecting(cluster="g"))
    assert done.exit_code == 2
    assert "expect: unknown key cluster" in done.stderr
