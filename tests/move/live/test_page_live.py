"""docs/how-to/move-a-connector.md: its session, command by command as it stands, and what it prints.

`pytest --update-golden` writes into the page what is printed now.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from tests.command_tree import leaves
from tests.conftest import Invoke
from tests.move.live.ground import Scene
from tests.sandbox_fixtures import PATIENCE_S, rest

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "move-a-connector.md"
SETUP, SESSION = "<!-- setup -->", "<!-- session -->"
FILE = "/tmp/orders.txt"  # noqa: S108 - the page's
VARIES = (
    (r"127\.0\.0\.1:\d+", "ADDRESS"),
    (r"\b[A-Za-z0-9_-]{22}\b", "CLUSTER"),
    (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"),
    (r"-[0-9a-f]{8}\b", "-ID"),
    (r"\b\d+(\.\d+)? ?m?s\b", "DURATION"),
    (r'"position":\d+', "POSITION"),
    (r"\b[\d,]+ (records?|transactions?)\b", r"N \1"),
    (r" +", " "),
)
"""What is another one in every run: pattern -> what stands for it."""


def block(mark: str) -> str:
    """The console block below a mark of the page."""
    [found] = re.findall(rf"^{re.escape(mark)}\n+```console\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    return str(found)


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Each command of a block, its further lines included, and what is printed below it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        lines = part.splitlines(keepends=True)
        more = next((number for number, line in enumerate(lines[1:], 1) if not line.startswith("> ")), len(lines))
        command = lines[0] + "".join(line.removeprefix("> ") for line in lines[1:more])
        yield command.rstrip("\n"), "".join(lines[more:])


def alike(text: str) -> list[str]:
    """The lines of an output, without what varies."""
    for pattern, word in VARIES:
        text = re.sub(pattern, word, text)
    return [line.rstrip() for line in text.splitlines()]


def test_what_comes_first_is_a_command_line(invoke: Invoke, tmp_path: Path) -> None:
    """The two sandboxes, which the session has from the fixture, and their profiles."""
    config = tmp_path / "profiles.yaml"
    for command, _output in commands(block(SETUP)):
        words = shlex.split(command.replace("\\\n", ""))[1:]
        leaves()[" ".join(words[:2])].make_context(words[1], words[2:])
        if words[:2] == ["profile", "set"]:
            assert invoke(*words, "--config", str(config)).exit_code == 0
    profiles = yaml.safe_load(config.read_text())["profiles"]
    assert set(profiles) == {"old", "new"}
    assert all({"bootstrap_server", "connect_url", "group_id", "connect"} <= set(each) for each in profiles.values())


@pytest.mark.live
def test_the_session_prints_what_stands_there(scene: Scene, pytestconfig: pytest.Config) -> None:
    here, away = scene.sides["here"], scene.sides["away"]
    profiles = {"old": here.settings(), "new": away.settings()}
    scene.config.write_text(yaml.safe_dump({"profiles": profiles}))
    bin_folder = Path(sys.executable).parent
    environ = {name: value for name, value in os.environ.items() if not name.startswith("EOSCTL_")}
    environ |= {"PATH": f"{bin_folder}:{os.environ['PATH']}", "EOSCTL_CONFIG": str(scene.config)}
    environ |= {"XDG_STATE_HOME": str(scene.folder), "OLD": here.url, "NO_COLOR": "1", "no_proxy": "127.0.0.1"}
    (scene.folder / "orders.txt").touch()
    paths = {str(scene.folder / "orders.txt"): FILE, str(scene.folder / "plan.txt"): "/tmp/plan.txt"}  # noqa: S108
    left = [str(scene.folder / "eosctl"), "~/.local/state/eosctl"]
    groups: list[int] = []

    def run(command: str) -> str:
        for path, shown in paths.items():
            command = command.replace(shown, path)
        output = scene.folder / "output.txt"
        with output.open("w") as printed:
            process = subprocess.Popen(
                ["bash", "-c", command], env=environ, cwd=scene.folder, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.STDOUT,
            )  # fmt: skip
            groups.append(process.pid)
            process.wait(PATIENCE_S)
        return shown_as(output.read_text())

    def shown_as(text: str) -> str:
        """With the page's paths; a column is as wide as its cells."""
        for path, shown in [*paths.items(), left]:
            wider = " " * (len(path) - len(shown))
            text = text.replace(f"SOURCE-PARTITION{wider}", "SOURCE-PARTITION").replace(path, shown)
        return text

    try:
        printed = [(command, expected, run(command)) for command, expected in commands(block(SESSION))]
    finally:
        for group in groups:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        for side in (here, away):
            if "orders" in side.names():
                rest(f"{side.url}/connectors/orders", "DELETE")
    if pytestconfig.getoption("--update-golden"):
        text = "".join(f"$ {command.replace(chr(10), chr(10) + '> ')}\n{output}" for command, _old, output in printed)
        PAGE.write_text(PAGE.read_text().replace(block(SESSION), text))
        return
    for command, expected, output in printed:
        assert alike(output) == alike(expected), command
