"""What the bootstrap asks of pip, in a checkout of its own whose `python` notes what it is told."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
_PYTHON = """#!/bin/sh
printf '%s\\n' "$@" END >> "$0.words"
cat "$DIST_EXTRA_CONFIG" > "$0.settings"
"""
_INSTALL = "from eosctl.bootstrap import ensure_venv; print(ensure_venv(extras=('dev', 'spark')))"


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """The interpreter of the checkout in `tmp_path`."""
    (tmp_path / "eosctl").mkdir()
    for name in ("__init__.py", "bootstrap.py", "errors.py", "machine/java.py"):
        shutil.copy(ROOT / "eosctl" / name, tmp_path / "eosctl")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    made = tmp_path / ".venv" / "bin" / "python"
    made.parent.mkdir(parents=True)
    made.write_text(_PYTHON)
    made.chmod(0o755)
    return made


@pytest.mark.parametrize("keeps_nothing", [False, True])
def test_what_pip_need_not_do_is_left_to_whoever_imports(python: Path, keeps_nothing: bool) -> None:
    """pip compiled 6,000 modules, tests of pandas and others for the most part, and deflated jars for a wheel.

    Where Python may keep nothing that it compiles, pip still does it.
    """
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environ |= {"PYTHONDONTWRITEBYTECODE": "1"} if keeps_nothing else {}
    command = [sys.executable, "-c", _INSTALL]
    done = subprocess.run(command, cwd=python.parents[2], env=environ, capture_output=True, text=True, check=True)
    assert done.stdout == f"{python}\n"
    calls = [call.split() for call in python.with_suffix(".words").read_text().split("END\n") if call]
    for words in calls:
        assert words[:3] == ["-m", "pip", "install"]
        assert ("--no-compile" in words) is not keeps_nothing
    assert calls[-1][-1].startswith(f"{python.parents[2]}[dev,")
    assert "compression = stored" in python.with_suffix(".settings").read_text()
    stamp = json.loads((python.parents[1] / "eosctl-installed.json").read_text())
    assert {"dev", "spark"} <= set(stamp["extras"])


def test_only_files_of_a_known_hash_are_installed_and_no_build_fetches_others(python: Path) -> None:
    """The two commands of the README took whatever an index had for `pyarrow>=18` at that moment."""
    subprocess.run([sys.executable, "-c", _INSTALL], cwd=python.parents[2], capture_output=True, check=True)
    *fetching, own = [call.split() for call in python.with_suffix(".words").read_text().split("END\n") if call]
    for words in fetching:
        assert {"--require-hashes", "--no-build-isolation"} <= set(words)
        assert not [word for word in words if word.startswith(str(python.parents[2]))]
    asked = [word for words in fetching for word in words if word.endswith(".txt")]
    assert asked[:2] == ["requirements/build.txt", "requirements/eosctl.txt"]
    assert {"requirements/dev.txt", "requirements/spark.txt"} <= set(asked)
    assert {"--no-deps", "--no-build-isolation"} <= set(own)


def test_another_list_is_installed_at_the_next_start(python: Path) -> None:
    install = [sys.executable, "-c", _INSTALL]
    words = python.with_suffix(".words")
    for changed, calls in ((False, 3), (False, 3), (True, 6)):
        if changed:
            (python.parents[2] / "requirements" / "dev.txt").write_text("")
        subprocess.run(install, cwd=python.parents[2], capture_output=True, check=True)
        assert words.read_text().count("END\n") == calls


def test_the_set_up_needs_nothing_that_it_installs() -> None:
    """Values are of msgspec, which is not there yet."""
    missing = "import sys; sys.modules.update(msgspec=None, click=None, yaml=None)"
    code = f"{missing}; import eosctl.bootstrap, eosctl.machine.java"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


def test_a_variable_of_ours_is_no_traceback_before_anything_is_installed() -> None:
    """Whether its name sounds like a secret was asked of a module that needs msgspec, which pip was to bring."""
    code = "import sys; sys.path.insert(0, '.'); from eosctl.machine.children import child_environ as of; print(of())"
    environ = {"EOSCTL_CONNECT_PASSWORD_FILE": "/x", "EOSCTL_GROUP_ID": "g"}
    words = [sys.executable, "-I", "-S", "-c", code]
    done = subprocess.run(words, cwd=ROOT, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "EOSCTL_GROUP_ID" in done.stdout
    assert "PASSWORD" not in done.stdout
