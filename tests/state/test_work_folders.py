"""What a run works in goes with it: at its end, or, after a kill, with the next run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from eosctl.state.work_folders import work_folder
from tests.fakes.clock import PLENTY_S

_RUN = """
import sys
from pathlib import Path
from eosctl.state.work_folders import work_folder
with work_folder(Path(sys.argv[1]), ".spark-") as folder:
    (folder / "scratch").mkdir()
    (folder / "scratch" / "file").touch()
    print(folder, flush=True)
    sys.stdin.read()
"""


def test_a_killed_runs_folder_goes_and_one_in_use_stays(tmp_path: Path) -> None:
    """What a killed run of Spark had written stayed in /tmp for good."""
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", _RUN, str(tmp_path)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
        )
        for _ in range(2)
    ]  # fmt: skip
    try:
        killed, in_use = [Path(run.stdout.readline().strip()) for run in runs if run.stdout]
        os.killpg(runs[0].pid, signal.SIGKILL)
        runs[0].wait(PLENTY_S)
        assert killed.exists()
        with work_folder(tmp_path, ".spark-") as mine:
            assert sorted(tmp_path.iterdir()) == sorted([in_use, mine])
            assert (in_use / "scratch" / "file").exists()
        assert list(tmp_path.iterdir()) == [in_use]
        runs[1].communicate(timeout=PLENTY_S)
        assert list(tmp_path.iterdir()) == []
    finally:
        for run in runs:
            run.kill()
            run.communicate(timeout=PLENTY_S)


def test_only_folders_of_the_same_kind_go(tmp_path: Path) -> None:
    for name in (".spark-left", ".planning-left", "0123456789abcdef"):
        (tmp_path / name).mkdir()
    with work_folder(tmp_path, ".spark-") as mine:
        assert sorted(each.name for each in tmp_path.iterdir() if each != mine) == [
            ".planning-left",
            "0123456789abcdef",
        ]


def test_what_is_no_folder_of_ours_stays(tmp_path: Path) -> None:
    """The folder may be everyone's, as /tmp is."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "file").touch()
    (tmp_path / ".spark-link").symlink_to(tmp_path / "home")
    (tmp_path / ".spark-file").touch()
    with work_folder(tmp_path, ".spark-"):
        pass
    assert sorted(each.name for each in tmp_path.iterdir()) == [".spark-file", ".spark-link", "home"]
    assert (tmp_path / "home" / "file").exists()


def test_a_folder_that_another_run_took_away_at_once_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Path] = []

    def makes(prefix: str, dir: Path) -> str:  # noqa: A002 - as tempfile has it
        made.append(dir / f"{prefix}{len(made)}")
        if len(made) > 1:  # the first is gone before it is locked
            made[-1].mkdir()
        return str(made[-1])

    monkeypatch.setattr(tempfile, "mkdtemp", makes)
    with work_folder(tmp_path, ".spark-") as folder:
        assert folder == tmp_path / ".spark-1"


def test_what_was_renamed_is_kept(tmp_path: Path) -> None:
    with work_folder(tmp_path, ".planning-") as draft:
        (draft / "plan.json").touch()
        draft.rename(tmp_path / "plan")
    assert (tmp_path / "plan" / "plan.json").exists()


def test_a_run_that_was_broken_off_leaves_nothing(tmp_path: Path) -> None:
    def work() -> None:
        with work_folder(tmp_path / "new", ".planning-") as draft:
            (draft / "file").touch()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert list((tmp_path / "new").iterdir()) == []
