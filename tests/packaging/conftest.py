"""Fixtures on a release: made once for all tests, of what git sees in this tree, committed or not."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_IDENTITY = ("-c", "user.name=tests", "-c", "user.email=tests@localhost")


@dataclass(frozen=True)
class Release:
    """The commit that it is of, and its files."""

    commit: str
    folder: Path

    def file(self, pattern: str) -> Path:
        """The one file with such a name."""
        (found,) = self.folder.glob(pattern)
        return found


def present_commit() -> str:
    """A commit of what is tracked as it is now; HEAD where nothing has changed."""
    stashed = subprocess.run(["git", *_IDENTITY, "stash", "create"], cwd=ROOT, capture_output=True, text=True)
    return stashed.stdout.strip() or "HEAD"


def make_release(commit: str, folder: Path, *more: str) -> None:
    words = [sys.executable, "-m", "tools.release", "--out", str(folder), "--commit", commit, *more]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    made = Release(present_commit(), tmp_path_factory.mktemp("release"))
    make_release(made.commit, made.folder)
    return made
