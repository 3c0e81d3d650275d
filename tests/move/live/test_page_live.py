"""docs/how-to/move-a-connector.md: its session, command by command as it stands, and what it prints.

`pytest --update-golden` writes into the page what is printed now.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path

import pytest
import yaml

from tests.command_tree import leaves
from tests.conftest import Invoke
from tests.docs_site.session import Shell, steps_of, with_outputs
from tests.move.live.ground import Scene
from tests.sandbox_fixtures import rest

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "move-a-connector.md"
SETUP, SESSION = "<!-- setup -->", "<!-- session -->"
FILES = ("/tmp/orders.txt", "/tmp/plan.txt")  # noqa: S108 - the page's
VARIES = (
    (r"127\.0\.0\.1:\d+", "ADDRESS"),
    (r"\b[A-Za-z0-9_-]{22}\b", "CLUSTER"),
    (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"),
    (r"-[0-9a-f]{8}\b", "-ID"),
    (r"\b\d+(\.\d+)? ?m?s\b", "DURATION"),
    (r'"position":\d+', "POSITION"),
    (r"\b[\d,]+ (record|transaction)s?\b( were| was)?", r"N \1s"),
    (r" +", " "),
)
"""What is another one in every run: pattern -> what stands for it."""


def block(mark: str) -> str:
    """The console block below a mark of the page."""
    [found] = re.findall(rf"^{re.escape(mark)}\n+(```console\n.*?^```)", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    return str(found)


def alike(text: str) -> list[str]:
    """The lines of an output, without what varies."""
    for pattern, word in VARIES:
        text = re.sub(pattern, word, text)
    return [line.rstrip() for line in text.splitlines()]


def test_what_comes_first_is_a_command_line(invoke: Invoke, tmp_path: Path) -> None:
    """The two sandboxes, which the session has from the fixture, and their profiles."""
    config = tmp_path / "profiles.yaml"
    for step in steps_of(block(SETUP)):
        words = shlex.split(step.script.replace("\\\n", ""))[1:]
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
    environ = {name: value for name, value in os.environ.items() if not name.startswith("EOSCTL_")}
    environ |= {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "EOSCTL_CONFIG": str(scene.config)}
    state = scene.folder / "state"
    environ |= {"XDG_STATE_HOME": str(state), "OLD": here.url, "NO_COLOR": "1", "no_proxy": "127.0.0.1"}
    paths = {str(scene.folder / Path(shown).name): shown for shown in FILES}
    (scene.folder / Path(FILES[0]).name).touch()

    def run(script: str) -> str:
        """With the page's paths; a column is as wide as its cells."""
        for path, shown in paths.items():
            script = script.replace(shown, path)
        text = shell.run(script)
        for path, shown in paths.items():
            wider = " " * (len(path) - len(shown))
            text = text.replace(f"SOURCE-PARTITION{wider}", "SOURCE-PARTITION").replace(path, shown)
        return text

    session = block(SESSION)
    try:
        with Shell(environ, state) as shell:
            outputs = [run(step.script) for step in steps_of(session)]
    finally:
        for side in (here, away):
            if "orders" in side.names():
                rest(f"{side.url}/connectors/orders", "DELETE")
    if pytestconfig.getoption("--update-golden"):
        PAGE.write_text(PAGE.read_text().replace(session, with_outputs(session, outputs)))
        return
    for step, output in zip(steps_of(session), outputs, strict=True):
        assert alike(output) == alike(step.output), step.script
