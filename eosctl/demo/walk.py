"""A walk through the demo: says why, runs commands, proves claims."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from eosctl.app import App
from eosctl.deadline import Deadline, Event, MessageStyle
from eosctl.demo.answers import Shows, shortened
from eosctl.errors import DeadlineError, EosctlError
from eosctl.foreign import Lines, shell_words
from eosctl.machine.packages import own_command
from eosctl.ports import ConnectWorker
from eosctl.sandbox.rows import DemoRow
from eosctl.sandbox.stack import Stack

GROUP, OLD_GROUP = "connect-eos", "connect-old"
_STEP_TIMEOUT_S, _COMMAND_TIMEOUT_S = 180.0, 300.0


@dataclass(slots=True)
class Walk:
    """One walk through the demo: its sandbox, its output, and what it has proved so far."""

    app: App
    stack: Stack
    environ: Mapping[str, str]
    scene: str = ""
    rows: list[DemoRow] = field(default_factory=list)

    def say(self, *lines: str, style: MessageStyle = "") -> None:
        """Print lines of the narration."""
        self.app.on_event(Event(Lines.of(*lines), style=style))

    def prove(self, what: str, *, expected: object, actual: object) -> None:
        """Add a row to the report, and print it."""
        right = expected == actual
        self.rows.append(DemoRow(step=self.scene, proved=what, expected=expected, actual=actual, ok=right))
        if right:
            self.say(f"   proved: {what}: {actual}", style="good")
        else:
            self.say(f"   WRONG: {what}: {actual}, expected {expected}", style="bad")

    def exports(self, group: str) -> dict[str, str]:
        """Return the environment that keeps commands short: with it, every printed command works by hand."""
        topics = self.stack.state.topics[group]
        return {
            "EOSCTL_BOOTSTRAP_SERVER": self.stack.bootstrap_servers,
            **self.stack.login.environ(),
            "EOSCTL_CONNECT_URL": ",".join(self.stack.urls(group)),
            "EOSCTL_GROUP_ID": group,
            "EOSCTL_CONFIG_TOPIC": topics["config"],
            "EOSCTL_OFFSET_TOPIC": topics["offset"],
        }

    def eosctl(self, *words: str, group: str = GROUP, exits: int = 0, shows: Shows, proves: str = "") -> list[str]:
        """Print and run one eosctl command as a user would, and print what `shows` leaves of its answer.

        Returns the lines of the answer. The exit code is proved where it says something, or is another one.
        """
        self.say("", f"   $ eosctl {shell_words(*words)}", style="command")
        command = [*own_command(), *words]
        state = {"XDG_STATE_HOME": str(self.stack.directory / "state")}  # backups go when the sandbox goes
        patience = {"EOSCTL_TIMEOUT": f"{_COMMAND_TIMEOUT_S:g}"}
        environ = {**patience, **self.environ, **self.exports(group), **state}
        done = subprocess.run(command, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        answer = done.stdout.splitlines()
        if done.returncode == exits:
            self.say(*(f"   {line}" for line in shortened(shows(answer))))
        else:
            self.say(*(f"   {line}" for line in (done.stderr + done.stdout).splitlines()), style="bad")
        if proves or done.returncode != exits:
            self.prove(proves or f"exit code of eosctl {words[0]}", expected=exits, actual=done.returncode)
        return answer

    @property
    def files(self) -> Path:
        """The directory of the connectors' source files."""
        return self.stack.directory / "files"

    def worker(self) -> ConnectWorker:
        """Return the exactly-once worker's REST interface."""
        return self.app.worker(self.stack.urls(GROUP)[0])

    def counted(self, topic: str) -> Counter[bytes]:
        """Count each line of a target topic, read_committed."""
        with self.app.topics() as topics:
            return Counter(record.value or b"" for record in topics.read(topic).records)

    def wait_for(self, what: str, done: Callable[[], bool]) -> None:
        """Poll `done` until it holds; raise DeadlineError naming `what`."""
        deadline = Deadline.after(_STEP_TIMEOUT_S, self.app.clock)
        for _ in deadline.rounds(0.3):
            if done():
                return
        raise DeadlineError(
            f"the demo timed out after {_STEP_TIMEOUT_S:g} s while waiting for {what}; {self._why()}",
            hint="Is the machine very busy? With --keep the sandbox stays, and its logs.",
        )

    def _why(self) -> str:
        """Describe the state of each connector, as the worker reports it."""
        try:
            known = self.worker().connectors()
        except EosctlError as exc:
            return exc.message
        return ", ".join(f"{name} ({entry.in_words()})" for name, entry in sorted(known.items()))
