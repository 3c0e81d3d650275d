"""`eosctl demo`: the main job on a fresh sandbox, every step a real command, every claim counted from real topics.

The demo writes to its own sandbox only. It narrates on stderr, prints each command before it runs, and returns one
report: a row per thing that was to be proved.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.ids import task_transactional_id
from eosctl.core.workers.modes import Mode
from eosctl.deadline import Deadline, Event
from eosctl.errors import DeadlineError, EosctlError, ExitCode, UnsupportedError
from eosctl.foreign import Lines, shell_word, shell_words
from eosctl.machine.packages import install_hint
from eosctl.ports import ConnectWorker
from eosctl.report import Report
from eosctl.sandbox.operations import Zombie
from eosctl.sandbox.rows import DEMO, DemoRow, DemoSummary
from eosctl.sandbox.settings import DEFAULT_VERSION, GroupSpec, StackSpec
from eosctl.sandbox.stack import Stack
from eosctl.target import Target

GROUP, OLD_GROUP = "connect-eos", "connect-old"
NAIVE, MOVED = "clicks", ("orders", "payments")
FIRST_LINES, MORE_LINES = 1000, 50
_STEP_TIMEOUT_S, _COMMAND_TIMEOUT_S = 180.0, 300.0


@dataclass(slots=True)
class Walk:
    """One walk through the demo: its sandbox, its output, and what it has proved so far."""

    app: App
    stack: Stack
    environ: Mapping[str, str]
    rows: list[DemoRow] = field(default_factory=list)

    def say(self, *lines: str) -> None:
        """Print lines of the narration."""
        self.app.on_event(Event(Lines.of(*lines)))

    def prove(self, step: str, what: str, *, expected: object, actual: object) -> None:
        """Add a row to the report, and print it."""
        right = expected == actual
        self.rows.append(DemoRow(step=step, proved=what, expected=expected, actual=actual, ok=right))
        self.say(f"   {'ok' if right else 'WRONG'}: {what}: {actual}" + ("" if right else f" (expected {expected})"))

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

    def eosctl(self, *words: str, group: str = GROUP, expect: int = 0) -> None:
        """Print and run one eosctl command as a user would; raise EosctlError for another exit code than expected."""
        self.say("", f"   $ eosctl {shell_words(*words)}")
        command = [sys.executable, "-m", "eosctl", *words]
        state = {"XDG_STATE_HOME": str(self.stack.directory / "state")}  # backups go when the sandbox goes
        patience = {"EOSCTL_TIMEOUT": f"{_COMMAND_TIMEOUT_S:g}"}  # Spark's first start on a busy machine
        environ = {**patience, **self.environ, **self.exports(group), **state}
        done = subprocess.run(command, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        for line in (done.stderr + done.stdout).splitlines():
            self.say(f"   {line}")
        if done.returncode != expect:
            raise EosctlError(f"eosctl {shell_words(*words)} exited with {done.returncode}, not {expect}")

    @property
    def files(self) -> Path:
        """The directory of the connectors' source files."""
        return self.stack.directory / "files"

    def worker(self) -> ConnectWorker:
        """Return the exactly-once worker's REST interface."""
        return self.app.worker(self.stack.urls(GROUP)[0])

    def curl(self) -> str:
        """Return the beginning of a curl line; the password is in a file, so that no list of processes shows it."""
        return f"curl --netrc-file {shell_word(str(self.stack.login.netrc))}"

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


def demo_on_a_fresh_sandbox(app: App, *, environ: Mapping[str, str], kafka_version: str | None, keep: bool) -> Report:
    """Start a sandbox with two groups, walk through the demo, and stop it unless `keep`.

    Raises UnsupportedError before anything is started if the Spark job of its third step can't run.
    """
    if importlib.util.find_spec("pyspark") is None:
        raise UnsupportedError("the demo runs a Spark job, and pyspark is missing", hint=install_hint("spark"))
    name = f"demo-{os.getpid()}"
    old = GroupSpec(OLD_GROUP, (Mode.DISABLED, Mode.DISABLED), topic_prefix=OLD_GROUP)
    spec = StackSpec(
        kafka_version=kafka_version or DEFAULT_VERSION, groups=(GroupSpec(GROUP), old), rest_login=True,
        broker_login=True,
    )  # fmt: skip
    directory = app.state_dir / "sandbox" / name
    stack = Stack.up(spec, directory, name=name, environ=environ, on_event=app.on_event)
    try:
        return walk_through(app, stack, environ=environ)
    finally:
        if keep:
            app.on_event(
                Event(
                    Lines.of("", f"The sandbox stays up. Stop it with: eosctl sandbox down --name {shell_word(name)}")
                )
            )
        else:
            app.on_event(Event(Lines.of("", "stopping the sandbox")))
            stack.down()


def walk_through(app: App, stack: Stack, *, environ: Mapping[str, str]) -> Report:
    """Walk through the five steps on a running stack; the report's exit code is 0 only if every row is right."""
    topics = stack.state.topics[GROUP]
    target = Target(
        client=stack.client_settings(),
        connect_urls=tuple(stack.urls(GROUP)),
        connect=stack.connect_access(),
        group_id=GROUP,
        config_topic=topics["config"],
        offset_topic=topics["offset"],
    )
    walk = Walk(replace(app, target=target), stack, environ)
    walk.files.mkdir(exist_ok=True)
    walk.say("", "To repeat a command by hand, export these first:")
    for name, value in walk.exports(GROUP).items():
        walk.say(f"   export {shell_word(name)}={shell_word(value)}")
    for step in (_deliver, _switch_naively, _migrate_and_switch, _fence_a_zombie, _look_at_upgrade):
        step(walk)
    right = sum(1 for row in walk.rows if row.ok)
    return Report(
        kind=DEMO,
        rows=walk.rows,
        summary=DemoSummary(proved=right, wrong=len(walk.rows) - right),
        target={"group_id": GROUP},
        exit_code=ExitCode.OK if right == len(walk.rows) else ExitCode.FINDINGS,
    )


def _topic(connector: str) -> str:
    return f"demo-{connector}"


def _append_lines(walk: Walk, connector: str, first: int, count: int) -> None:
    with (walk.files / f"{connector}.txt").open("a", encoding="utf-8") as source:
        source.writelines(f"{connector} {number:06d}\n" for number in range(first, first + count))


def _config(walk: Walk, connector: str, **more: str) -> dict[str, str]:
    return {
        "connector.class": "FileStreamSource",
        "tasks.max": "1",
        "file": str(walk.files / f"{connector}.txt"),
        "topic": _topic(connector),
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        **more,
    }


def _put_config(walk: Walk, connector: str, **more: str) -> None:
    """Put the connector's configuration, and print the curl line that does the same by hand."""
    config, worker = _config(walk, connector, **more), walk.worker()
    url = shell_word(f"{worker.url}/connectors/{connector}/config")
    walk.say("", f"   $ {walk.curl()} -X PUT -H 'Content-Type: application/json' {url} -d \\")
    walk.say(f"       {shell_word(json.dumps(config))}")
    worker.put_connector_config(connector, config)


def _set_state(walk: Walk, connector: str, verb: str) -> None:
    worker = walk.worker()
    walk.say("", f"   $ {walk.curl()} -X PUT {shell_word(f'{worker.url}/connectors/{connector}/{verb}')}")
    worker.set_state(connector, verb)


def _deliver(walk: Walk) -> None:
    walk.say("", f"1. Three FileStreamSource connectors deliver {FIRST_LINES} lines each, exactly once.")
    for connector in (NAIVE, *MOVED):
        _append_lines(walk, connector, 0, FIRST_LINES)
        _put_config(walk, connector)
    for connector in (NAIVE, *MOVED):
        _wait_for_lines(walk, connector, FIRST_LINES)
        _prove_exactly_once(walk, "deliver", connector, FIRST_LINES)
    walk.eosctl("workers", "list")
    walk.eosctl("offsets", "list")


def _switch_naively(walk: Walk) -> None:
    walk.say(
        "", f"2. {NAIVE} is given an offsets topic of its own, the naive way: its configuration is changed, no more."
    )
    walk.say("   The documentation promises a fallback to the global offsets; no version of Kafka has it.")
    _put_config(walk, NAIVE, **{"offsets.storage.topic": f"offsets-{NAIVE}"})
    _wait_for_lines(walk, NAIVE, 2 * FIRST_LINES)
    lines = walk.counted(_topic(NAIVE))
    walk.prove("naive", f"{NAIVE} read its whole file again: records", expected=2 * FIRST_LINES, actual=lines.total())
    duplicates = lines.total() - len(lines)
    walk.prove("naive", f"{NAIVE}: duplicates delivered", expected=FIRST_LINES, actual=duplicates)


def _migrate_and_switch(walk: Walk) -> None:
    walk.say("", f"3. {' and '.join(MOVED)} are moved by eosctl: stop, migrate (a Spark job), switch, resume.")
    for connector in MOVED:
        _set_state(walk, connector, "stop")
    walk.wait_for("the tasks to stop", lambda: not any(_tasks(walk, connector) for connector in MOVED))
    which = [word for connector in MOVED for word in ("--connector", connector)]
    pattern = ("--dedicated-topic", "offsets-{connector}")
    plan = str(walk.stack.directory / "plan.json")
    walk.eosctl("offsets", "migrate", "--from", "global", "--to", "dedicated", *pattern, *which, "--plan-out", plan)
    walk.eosctl("offsets", "migrate", "--plan", plan, "--yes")
    walk.eosctl("offsets", "verify", plan)
    for connector in MOVED:
        _put_config(walk, connector, **{"offsets.storage.topic": f"offsets-{connector}"})
        offsets = walk.worker().offsets(connector)
        missing = sum(1 for entry in offsets if entry.get("offset") is None)
        walk.prove("migrate", f"{connector}: source partitions without an offset", expected=0, actual=missing)
    walk.eosctl("offsets", "diff", *which)
    for connector in MOVED:
        _append_lines(walk, connector, FIRST_LINES, MORE_LINES)
        _set_state(walk, connector, "resume")
    for connector in MOVED:
        _wait_for_lines(walk, connector, FIRST_LINES + MORE_LINES)
        _prove_exactly_once(walk, "migrate", connector, FIRST_LINES + MORE_LINES)


def _fence_a_zombie(walk: Walk) -> None:
    connector = MOVED[0]
    walk.say(
        "", f"4. A zombie: a producer takes the transactional id of {connector}'s task and leaves a transaction open."
    )
    _set_state(walk, connector, "stop")
    walk.wait_for("the task to stop", lambda: not _tasks(walk, connector))
    zombie_id, topic = task_transactional_id(GROUP, connector, 0), _topic(connector)
    bootstrap = walk.stack.bootstrap_servers
    login = walk.stack.login.librdkafka_settings()
    with Zombie(bootstrap, zombie_id, topic=topic, record=b"from the zombie", login=login) as zombie:
        walk.prove(
            "fence", "an open transaction hides the end of the topic", expected=True, actual=_is_blocked(walk, topic)
        )
        walk.eosctl("fence", zombie_id, "--yes")
        walk.prove("fence", "the zombie's commit ends with", expected="_FENCED", actual=zombie.commit())
    walk.wait_for("the transaction to be aborted", lambda: not _is_blocked(walk, topic))
    walk.prove("fence", "the topic is open to its end again", expected=False, actual=_is_blocked(walk, topic))
    _set_state(walk, connector, "resume")
    walk.wait_for("the task to run", lambda: "RUNNING" in _tasks(walk, connector))
    _append_lines(walk, connector, FIRST_LINES + MORE_LINES, MORE_LINES)
    _wait_for_lines(walk, connector, FIRST_LINES + 2 * MORE_LINES)
    _prove_exactly_once(walk, "fence", connector, FIRST_LINES + 2 * MORE_LINES)


def _look_at_upgrade(walk: Walk) -> None:
    walk.say("", "5. What the workers will decide, and what a second group, two disabled workers, has before it.")
    walk.eosctl("task-counts", "list")
    walk.eosctl("upgrade", "plan", "--to", "enabled", group=OLD_GROUP)


def _tasks(walk: Walk, connector: str) -> list[str]:
    """Return the states of the connector's tasks, as REST reports them."""
    entry = walk.worker().connectors().get(connector)
    return [task.state for task in entry.tasks] if entry is not None else []


def _is_blocked(walk: Walk, topic: str) -> bool:
    with walk.app.topics() as topics:
        return any(bound.lso < bound.end for bound in topics.bounds(topic))


def _wait_for_lines(walk: Walk, connector: str, count: int) -> None:
    def arrived() -> bool:
        with walk.app.topics() as topics:
            known = topics.describe([_topic(connector)])
        return bool(known) and walk.counted(_topic(connector)).total() >= count

    walk.wait_for(f"{count} records in {_topic(connector)}", arrived)


def _prove_exactly_once(walk: Walk, step: str, connector: str, count: int) -> None:
    lines = walk.counted(_topic(connector))
    walk.prove(
        step, f"{connector}: records, distinct lines", expected=[count, count], actual=[lines.total(), len(lines)]
    )
