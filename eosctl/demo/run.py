"""`eosctl demo`: a story in six scenes on a fresh sandbox; every command is real, every claim is checked.

The demo writes to its own sandbox only. It narrates on stderr: why, the command, as much of its answer as matters, and
the proof. It returns one report: a row per thing that was to be proved.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.workers.modes import Mode
from eosctl.demo.scenes import SCENES, Scene
from eosctl.demo.walk import GROUP, OLD_GROUP, Walk
from eosctl.errors import EosctlError, ExitCode
from eosctl.foreign import shell_word
from eosctl.report import Report
from eosctl.sandbox.rows import DEMO, DemoSummary
from eosctl.sandbox.settings import DEFAULT_VERSION, GroupSpec, StackSpec
from eosctl.sandbox.stack import Stack


def demo_on_a_fresh_sandbox(app: App, *, environ: Mapping[str, str], kafka_version: str | None, keep: bool) -> Report:
    """Start a sandbox with two groups, walk through the demo, and stop it unless `keep`."""
    name = f"demo-{os.getpid()}"
    old = GroupSpec(OLD_GROUP, (Mode.DISABLED, Mode.DISABLED), topic_prefix=OLD_GROUP)
    spec = StackSpec(
        kafka_version=kafka_version or DEFAULT_VERSION, groups=(GroupSpec(GROUP), old), rest_login=True,
        broker_login=True,
    )  # fmt: skip
    directory = app.state_dir / "sandbox" / name
    stack = Stack.up(spec, directory, name=name, environ=environ, on_event=app.on_event)
    walk = Walk(app, stack, environ)
    try:
        report = walk_through(walk)
        if keep:
            _say_what_next(walk, name)
        return report
    finally:
        if keep:
            walk.say("", f"The sandbox stays up. Stop it with: eosctl sandbox down --name {shell_word(name)}")
        else:
            walk.say("", "stopping the sandbox")
            stack.down()


def _say_what_next(walk: Walk, name: str) -> None:
    walk.say("", "Try next, with these:", style="heading")
    walk.say(*(f"   export {shell_word(key)}={shell_word(value)}" for key, value in walk.exports(GROUP).items()))
    walk.say(
        "",
        "   eosctl doctor                                    is anything wrong with the group?",
        "   eosctl offsets log --connector orders            where it was, and when",
        f"   eosctl sandbox logs --name {shell_word(name):<21} what the workers say about it",
        "   eosctl watch                                     live, while you kill -9 a worker",
    )


def walk_through(walk: Walk) -> Report:
    """Play the story on a running stack."""
    walk.app = replace(walk.app, target=walk.stack.target(GROUP))
    walk.files.mkdir(exist_ok=True)
    return play(walk, SCENES)


def play(walk: Walk, scenes: Sequence[Scene]) -> Report:
    """Play the scenes in order; the report's exit code is 0 only if every row is right.

    A scene in which something is wrong is the last one: those after it build on it.
    """
    for number, (walk.scene, title, why, scene) in enumerate(scenes, start=1):
        walk.say("", f"{number} of {len(scenes)}  {title}", style="heading")
        walk.say(*(f"   {line}" for line in why))
        try:
            scene(walk)
        except EosctlError:
            walk.say("", f"Scene {number} failed: {title}", style="bad")
            raise
        if not all(row.ok for row in walk.rows):
            walk.say("", f"Scene {number} failed: {title}", style="bad")
            break
    right = sum(row.ok for row in walk.rows)
    return Report(
        kind=DEMO,
        rows=walk.rows,
        summary=DemoSummary(proved=right, wrong=len(walk.rows) - right),
        target={"group_id": GROUP},
        exit_code=ExitCode.OK if right == len(walk.rows) else ExitCode.FINDINGS,
    )
