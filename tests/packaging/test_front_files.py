"""What stands at the front of a repository is true: paths exist, and the issue forms are such."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import Invoke

ROOT = Path(__file__).resolve().parents[2]
FORMS = ROOT / ".github" / "ISSUE_TEMPLATE"
_TYPES = {"markdown", "textarea", "input", "dropdown", "checkboxes"}
_MADE = {"dist/", ".venv", ".venv/bin/eosctl"}
_PATH = re.compile(r"[\w.]+(/[\w.-]+)+/?|[\w-]+\.(?:md|toml)")


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "SECURITY.md"])
def test_paths_that_are_named_exist(name: str) -> None:
    text = (ROOT / name).read_text()
    quoted = [word for code in re.findall(r"`([^`]+)`", text) for word in code.split()]
    linked = re.findall(r"\]\(([^)#:]+)\)", text)
    fenced = [word for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL) for word in block.split()]
    named = {word for word in (*quoted, *linked, *fenced) if _PATH.fullmatch(word)} - _MADE
    assert len(named) >= 1
    assert [word for word in sorted(named) if not (ROOT / word).exists() and "NOUN" not in word] == []


@pytest.mark.parametrize("form", sorted(FORMS.glob("*.yml")), ids=lambda path: path.stem)
def test_issue_forms_have_the_shape_that_the_site_takes(form: Path) -> None:
    document: dict[str, Any] = yaml.safe_load(form.read_text())
    if form.stem == "config":
        assert document.keys() <= {"blank_issues_enabled", "contact_links"}
        return
    assert {"name", "description", "body"} <= document.keys() <= {"name", "description", "labels", "title", "body"}
    ids = [each["id"] for each in document["body"] if each["type"] != "markdown"]
    assert len(ids) == len(set(ids)) > 0
    for each in document["body"]:
        assert each["type"] in _TYPES
        assert each.keys() <= {"type", "id", "attributes", "validations"}
        assert ("value" if each["type"] == "markdown" else "label") in each["attributes"]
        assert each["type"] != "dropdown" or len(each["attributes"]["options"]) > 1


def test_the_version_is_the_same_wherever_it_stands(invoke: Invoke) -> None:
    """The program takes it from its installed metadata, which is made of pyproject.toml."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert invoke("--version").stdout == f"eosctl, version {version}\n"
    named = re.compile(r"(?:eosctl(?:-kubectl)?[:-]|newTag: )(\d+\.\d+\.\d+)")
    found = [
        (str(path.relative_to(ROOT)), each)
        for path in sorted((ROOT / "deploy").rglob("*"))
        if path.is_file()
        for each in named.findall(path.read_text())
    ]
    assert len(found) >= 6
    assert {each for _, each in found} == {version}
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text()
