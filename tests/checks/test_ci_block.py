"""The commands of docs/how-to/gate-a-deploy.md: what is healthy passes, what is wrong is 3, what is unseen neither."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from eosctl.errors import UnauthorizedError
from tests.conftest import Invoke
from tests.fakes.config_topic import config_records, created
from tests.fakes.config_world import ConfigWorld
from tests.fakes.doctor_scene import W1, W2, WHERE, cluster, later

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "gate-a-deploy.md"
DENIED = UnauthorizedError("not allowed")
TWO = {"records": config_records(*created("orders", 2, record=2)), "known_ids": ["g-orders-0", "g-orders-1"]}


def ci_commands() -> list[list[str]]:
    """The block's commands without the name of the program and the file that takes the document."""
    [block] = re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    lines = [line.removeprefix("$ eosctl ") for line in block.splitlines() if line.startswith("$ eosctl ")]
    return [shlex.split(line.partition(">")[0]) for line in lines]


def exit_codes(invoke: Invoke, there: ConfigWorld) -> dict[str, int]:
    """Command -> its exit code; each document has what was not seen where there is no finding."""
    codes = {}
    for words in ci_commands():
        outcome = invoke(*words, *WHERE, "-o", "json", **there.surroundings)
        codes[" ".join(words[:2] if words[0] != "doctor" else words[:1])] = outcome.exit_code
        if outcome.exit_code in (0, 7) and words[0] != "upgrade":
            assert bool(outcome.json()["data"]["unseen"]) == (outcome.exit_code == 7), words
    return codes


def test_the_block_has_the_four_checks() -> None:
    assert [words[:2] for words in ci_commands()] == [
        ["upgrade", "verify"], ["task-counts", "validate"], ["connectors", "check"], ["doctor"],
    ]  # fmt: skip


@pytest.mark.parametrize("idle_s", [0, 600, 6 * 86_400])
def test_a_healthy_group_passes_however_long_it_is_idle(invoke: Invoke, idle_s: float) -> None:
    there = cluster()
    later(there, idle_s)
    assert set(exit_codes(invoke, there).values()) == {0}


def test_a_healthy_group_whose_ids_the_brokers_forgot_passes(invoke: Invoke) -> None:
    """A source that is idle for more than a week: its worker is enabled, and its id is no longer known."""
    there = cluster(known_ids=())
    later(there, 8 * 86_400)
    assert set(exit_codes(invoke, there).values()) == {0}


def test_a_task_on_a_worker_that_is_not_enabled_stops_it(invoke: Invoke) -> None:
    """Its id is known from before; the headline alone said it."""
    there = cluster(modes={W1: "enabled", W2: "disabled"}, configs={"orders": {"tasks.max": "2"}}, **TWO)
    codes = exit_codes(invoke, there)
    assert {name: codes[name] for name in ("upgrade verify", "connectors check", "doctor")} == {
        "upgrade verify": 3, "connectors check": 3, "doctor": 3,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("call", "unseen"),
    [
        ("describe_transactions", {"upgrade verify", "connectors check", "doctor"}),
        ("list_transactions", {"task-counts validate", "doctor"}),
        ("find_coordinators", {"upgrade verify", "connectors check", "doctor"}),
        ("describe_group", {"upgrade verify", "task-counts validate", "connectors check", "doctor"}),
        ("describe", {"upgrade verify", "task-counts validate", "connectors check", "doctor"}),
        ("validate", {"upgrade verify", "connectors check", "doctor"}),
    ],
)
def test_what_is_refused_is_never_a_yes(invoke: Invoke, call: str, unseen: set[str]) -> None:
    codes = exit_codes(invoke, cluster(faults={call: DENIED}))
    assert {name for name, code in codes.items() if code} == unseen
    assert {code for name, code in codes.items() if name != "upgrade verify"} <= {0, 5, 7}
