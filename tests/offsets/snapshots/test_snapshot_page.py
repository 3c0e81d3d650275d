"""docs/how-to/keep-offset-snapshots.md and the CronJob: their command lines and manifests are what eosctl takes."""

from __future__ import annotations

import configparser
import importlib
import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from tests.conftest import Invoke

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "how-to" / "keep-offset-snapshots.md").read_text(encoding="utf-8")
CRON_JOB = ROOT / "deploy" / "offsets-snapshot" / "snapshot-cronjob.yaml"
LINES = re.findall(r"^eosctl (.+)$", PAGE, re.MULTILINE)


def parsed(words: list[str]) -> str:
    """The name of the command that takes these words."""
    command: click.Command = importlib.import_module("eosctl.commands.frame.root").root
    while isinstance(command, click.Group):
        found = command.get_command(click.Context(command), words[0])
        assert found is not None, words
        command, words = found, words[1:]
    command.make_context(str(command.name), words, resilient_parsing=False)
    return str(command.name)


@pytest.mark.parametrize("line", LINES)
def test_its_command_lines_parse(line: str, tmp_path: Path) -> None:
    assert parsed(shlex.split(line.replace("/backup/offsets", str(tmp_path))))


def test_the_units_run_a_command_line() -> None:
    units = [configparser.ConfigParser(delimiters="=", interpolation=None) for _ in range(2)]
    for unit, text in zip(units, re.findall(r"^```ini\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL), strict=True):
        unit.read_string(text)
    service, timer = units
    program, *words = shlex.split(service["Service"]["ExecStart"])
    assert (Path(program).name, parsed(words), service["Service"]["Type"]) == ("eosctl", "snapshot", "oneshot")
    assert timer["Timer"]["OnCalendar"] == "hourly"


def test_the_cron_job_runs_a_command_line_with_its_profile(invoke: Invoke, tmp_path: Path) -> None:
    kinds: dict[str, Any] = {each["kind"]: each for each in yaml.safe_load_all(CRON_JOB.read_text())}
    assert set(kinds) == {"ConfigMap", "PersistentVolumeClaim", "CronJob"}
    pod = kinds["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert (container["command"], parsed(list(container["args"]))) == (["eosctl"], "snapshot")
    assert [volume["name"] for volume in pod["volumes"]] == [mount["name"] for mount in container["volumeMounts"]]
    config = tmp_path / "config.yaml"
    config.write_text(kinds["ConfigMap"]["data"]["config.yaml"])
    config.chmod(0o600)
    shown = invoke("profile", "show", "--config", str(config), "-p", "prod", "-o", "json")
    assert shown.exit_code == 0, shown.stderr
