"""`eosctl fence`, as typed: whole output, exit codes, questions, files."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from eosctl.wire import error_codes as codes
from tests.fakes.transactions import Scene, scene

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

Invoke = Any
Golden = Callable[[str, str], None]


@pytest.fixture
def stage() -> Iterator[Scene]:
    with scene() as built:
        yield built


@pytest.fixture
def fence(invoke: Invoke, stage: Scene) -> Invoke:
    """`eosctl fence ARGS…` on the scene."""

    def run(*args: str, **more: Any) -> Any:
        return invoke("fence", *args, *stage.flags, **stage.surroundings, **more)

    return run


def test_dry_run_shows_the_plan_and_stops(fence: Invoke, stage: Scene, golden: Golden) -> None:
    outcome = fence("--connector", "orders", "g-done-0", "nosuch", "--dry-run")
    golden("fence/plan.txt", outcome.stdout)
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    assert stage.brokers.count("InitProducerId") == 0


def test_yes_applies_and_stdout_holds_the_result_only(fence: Invoke, golden: Golden) -> None:
    outcome = fence("--connector", "orders", "--yes")
    golden("fence/result.txt", outcome.stdout)
    golden("fence/result-stderr.txt", outcome.stderr)
    assert outcome.exit_code == 0


def test_json_is_the_contracts_envelope(fence: Invoke, golden: Golden) -> None:
    outcome = fence("g-orders-1", "--yes", "-o", "json")
    golden("fence/result.json", outcome.stdout)


def test_the_question(fence: Invoke, stage: Scene) -> None:
    outcome = fence("g-orders-0", input="y\n", can_ask=True)
    assert outcome.exit_code == 0
    assert "Fence 1 transactional id? [y/N]" in outcome.stderr
    assert stage.brokers.count("InitProducerId") == 1


def test_nothing_to_fence_asks_nothing(fence: Invoke) -> None:
    outcome = fence("nosuch", can_ask=False)
    assert outcome.exit_code == 0
    assert "skipped_unknown" in outcome.stdout


def test_a_live_task_is_refused_and_the_warning_comes_before_the_question(
    fence: Invoke, stage: Scene, golden: Golden
) -> None:
    stage.runs(("orders", 1))
    refused = fence("--connector", "orders", "--yes")
    assert refused.exit_code == 6
    golden("fence/live-refused.txt", refused.stderr)
    asked = fence("--connector", "orders", "--live", input="n\n", can_ask=True)
    assert asked.exit_code == 6
    assert asked.stderr.index("eosctl connectors restart --failed -u ") < asked.stderr.index("[y/N]")


def test_each_danger_has_a_flag_of_its_own_and_the_audit_log_tells_which_were_given(
    fence: Invoke, stage: Scene, tmp_path: Path
) -> None:
    """--live used to set aside running tasks, unknown liveness and what Flink has prepared, all at once."""
    stage.runs(("orders", 1))
    stage.brokers.state.open_transaction("job-0-7", ("sink", 1), epoch=2)
    flags = ["--live", "--discard-prepared", "--unknown-liveness"]
    for given, wanted in ((flags[1:], "--live"), ([flags[0], flags[2]], "--discard-prepared")):
        refused = fence("g-orders-1", "job-0-7", "--yes", *given)
        assert (refused.exit_code, f"add {wanted}" in refused.stderr) == (6, True), refused.stderr
    stage.brokers.fail_next("DescribeGroups", codes.GROUP_AUTHORIZATION_FAILED)
    unknown = fence("g-orders-1", "job-0-7", "--yes", *flags[:2])
    assert (unknown.exit_code, "add --unknown-liveness" in unknown.stderr) == (6, True), unknown.stderr
    assert fence("g-orders-1", "job-0-7", "--yes", *flags).exit_code == 0
    entries = [json.loads(line) for line in (tmp_path / "state" / "eosctl" / "audit.jsonl").read_text().splitlines()]
    assert [entry["outcome"] for entry in entries] == ["refused", "refused", "refused", "ok"]
    assert entries[-1]["overrides"] == {"live": True, "discard_prepared": True, "unknown_liveness": True}


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_ids_from_a_file_and_from_stdin(fence: Invoke, tmp_path: Path, mark: str) -> None:
    """The mark that Windows begins its files with became a part of the first id, which then nobody knew."""
    path = tmp_path / "ids"
    path.write_text(f"{mark}g-orders-1\n\ng-orders-0\ng-orders-1\n", encoding="utf-8")
    for arguments, more in (
        (("--from-file", str(path)), {}),
        (("--from-file", "-"), {"input": path.read_text(encoding="utf-8")}),
    ):
        rows = fence(*arguments, "--dry-run", "-o", "json", **more).json()["data"]["rows"]
        assert [row["transactional_id"] for row in rows] == ["g-orders-1", "g-orders-0"]


def test_a_bad_file_is_a_usage_matter(fence: Invoke, tmp_path: Path) -> None:
    path = tmp_path / "ids"
    path.write_bytes(b"ok\n\xff\n")
    bad = fence("--from-file", str(path))
    assert (bad.exit_code, f"{path}, line 2: not UTF-8" in bad.stderr) == (2, True)
    missing = fence("--from-file", str(tmp_path / "none"), "-o", "json")
    assert (missing.exit_code, missing.json()["errors"][0]["code"]) == (2, "input_file")


class Interrupted(io.RawIOBase):
    """A terminal whose user answers with Ctrl-C."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        if memoryview(buffer).nbytes:
            raise KeyboardInterrupt
        return 0


def test_an_interrupt_at_the_question_is_one(fence: Invoke) -> None:
    """Ctrl-C at the question used to be exit code 6, as an answer that did not come."""
    outcome = fence("g-orders-0", input=io.BufferedReader(Interrupted()), can_ask=True)
    assert outcome.exit_code == 130
    assert outcome.stderr.endswith("\nerror: interrupted at the question; nothing was written\n")
    assert fence("g-orders-0", input="", can_ask=True).exit_code == 6


def test_a_long_plan_shows_twenty_rows_as_text_and_all_as_json(fence: Invoke, tmp_path: Path) -> None:
    path = tmp_path / "ids"
    path.write_text("".join(f"nosuch-{number:03}\n" for number in range(200)))
    text = fence("--from-file", str(path), "--dry-run").stdout
    assert text.count("nosuch-") == 20
    assert "... and 180 more rows; -o json has them all" in text
    assert text.splitlines()[-1] == "ids: 200, skipped unknown: 200"
    document = fence("--from-file", str(path), "--dry-run", "-o", "json").json()
    assert (len(document["data"]["rows"]), document["data"]["summary"]["ids"]) == (200, 200)


@pytest.mark.parametrize(("tasks", "words"), [("0", "no task"), ("1", "task 0"), ("2", "tasks 0 to 1")])
def test_tasks_that_overrule_the_record_are_named(fence: Invoke, tasks: str, words: str) -> None:
    """`--tasks 0` used to fence "tasks 0 to -1"."""
    warned = fence("--connector", "orders", "--tasks", tasks, "--dry-run").stderr
    assert f"fencing {words} of orders: the number is from --tasks" in warned


def test_fewer_tasks_than_none_are_a_usage_error(fence: Invoke) -> None:
    assert fence("--connector", "c", "--tasks", "-1").exit_code == 2
