"""The wheel: nothing forgotten, and it works from `/` in an empty environment."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def test_packages_are_the_tree() -> None:
    """A forgotten package is silently missing from the wheel."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    tree = {"eosctl", "eosctl.commands"}
    for top, name in (("eosctl", "eosctl"), ("commands", "eosctl.commands")):
        found = [path.parent.relative_to(ROOT / top) for path in (ROOT / top).glob("*/**/__init__.py")]
        tree |= {".".join([name, *directory.parts]) for directory in found}
    assert set(settings["packages"]) == tree
    for files in settings["data-files"].values():
        assert all((ROOT / file).stat().st_size > 0 for file in files)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(ROOT)],
        check=True, capture_output=True,
    )  # fmt: skip
    (built,) = out.glob("*.whl")
    return built


def test_wheel_carries_commands_locks_and_completions(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "eosctl/commands/frame/root.py" in names
    assert "eosctl/py.typed" in names
    assert any(name.startswith("eosctl/sandbox/") and name.endswith(".lock") for name in names)
    for end in ("completions/eosctl.bash", "site-functions/_eosctl", "vendor_completions.d/eosctl.fish"):
        assert any(name.endswith(end) for name in names), end
    assert not [name for name in names if name.startswith(("tests/", "commands/"))]


@pytest.mark.live
def test_wheel_runs_from_the_root_directory(wheel: Path, tmp_path: Path) -> None:
    """Installed with its dependencies into an empty environment, the script and every sub-command's help work."""
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(venv / "bin" / "python"), "install", "--quiet", "--no-compile"]
    subprocess.run([*pip, str(wheel)], check=True, capture_output=True)
    script = venv / "bin" / "eosctl"
    listed = subprocess.run([script, "--help"], cwd="/", capture_output=True, text=True, check=True).stdout
    commands = [line.split()[0] for line in listed.split("Commands:")[1].splitlines() if line.strip()]
    assert {"fence", "offsets", "sandbox", "task-counts", "upgrade", "workers"} <= set(commands)
    for command in commands:
        done = subprocess.run([script, command, "--help"], cwd="/", capture_output=True, text=True)
        assert done.returncode == 0, (command, done.stderr)
    refused = subprocess.run([script, "fence", "x", "-b", "127.0.0.1:1"], cwd="/", capture_output=True, text=True)
    assert (refused.returncode, "Traceback" in refused.stderr) == (4, False), refused.stderr
