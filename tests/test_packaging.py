"""The wheel: nothing forgotten, and it works from `/` in an empty environment."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

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


_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)")


def _pins(name: str) -> list[tuple[str, str]]:
    """Return the packages of a list and their versions; each has a hash."""
    logical = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    lines = [line for line in logical if line and not line.startswith("#")]
    found = [_PIN.match(line) for line in lines]
    assert all("--hash=sha256:" in line for line in lines), name
    assert all(found), name
    return [(pin[1], pin[2]) for pin in found if pin]


def test_the_lists_with_hashes_hold_what_the_project_asks_for() -> None:
    """A package that pyproject.toml names and no list has can't be installed by the README's two commands."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lists = {name: _pins(name) for name in ("build", "eosctl", "spark", "java", "dev")}
    names = {name: {package for package, _ in pins} for name, pins in lists.items()}
    packages = [package for each in names.values() for package in each]
    assert len(packages) == len(set(packages))
    extras = project["optional-dependencies"]
    for name in ("eosctl", "spark", "java", "dev"):
        known = lists[name] + (lists["build"] + lists["eosctl"] if name != "eosctl" else [])
        for text in project["dependencies"] if name == "eosctl" else extras[name]:
            requirement = Requirement(text)
            versions = [version for package, version in known if package == requirement.name.lower()]
            assert versions, (name, text)
            assert all(requirement.specifier.contains(version) for version in versions), (text, versions)


def test_nobody_is_told_to_install_a_name_that_is_not_ours() -> None:
    """The exporter's docs said `pip install eosctl`: whoever registers that name runs code beside Kafka's passwords."""
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    told = re.compile(r"\b(pip3?|pipx|uv|uvx)( \w+)? install( -\S+)* ['\"]?eosctl\b(?!/)")
    found = [
        (name, line)
        for name in files.split("\0")
        if name.endswith((".py", ".md", ".yaml", ".yml", "Dockerfile", ".toml", ".fish", ".bash"))
        for line in (ROOT / name).read_text(encoding="utf-8").splitlines()
        if told.search(line) and name != "tests/test_packaging.py"
    ]
    assert not found
