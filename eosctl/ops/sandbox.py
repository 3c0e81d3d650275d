"""`eosctl sandbox`: up, status, logs, down of a named stack below the state directory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from eosctl.errors import NotFoundError, RefusedError
from eosctl.events import OnEvent
from eosctl.report import Report
from eosctl.sandbox.settings import Eos, GroupSpec, StackSpec
from eosctl.sandbox.stack import Stack, log_tail
from eosctl.sandbox.state import Node


def up_sandbox(
    state_dir: Path,
    name: str,
    *,
    kafka_version: str,
    modes: Sequence[str],
    environ: Mapping[str, str],
    on_event: OnEvent,
) -> Report:
    """Starts a broker and one worker per mode; refuses when a stack of that name already runs."""
    directory = _directory(state_dir, name)
    there = Stack.find(directory)
    if there is not None and there.alive():
        raise RefusedError(f"the sandbox {name} is already up", hint=f"See it: eosctl sandbox status --name {name}")
    if there is not None or directory.exists():
        _clear(there, directory)
    group = GroupSpec(modes=tuple(Eos(mode) for mode in modes))
    spec = StackSpec(kafka_version=kafka_version, groups=(group,))
    stack = Stack.up(spec, directory, name=name, environ=environ, on_event=on_event)
    return _report("sandbox-up", stack)


def sandbox_status(state_dir: Path, name: str) -> Report:
    """What is known of the stack and which of its processes run; without a stack, no rows."""
    stack = Stack.find(_directory(state_dir, name))
    if stack is None:
        return Report(kind="sandbox-status", summary={"name": name, "up": False})
    return _report("sandbox-status", stack)


def sandbox_logs(state_dir: Path, name: str, *, node: str | None, lines: int) -> Report:
    """The last lines of one node's log, or of every node's; raises NotFoundError without a stack."""
    stack = Stack.find(_directory(state_dir, name))
    if stack is None:
        raise NotFoundError(f"there is no sandbox {name}", hint="Start one: eosctl sandbox up")
    nodes = [stack.node(node)] if node else stack.state.nodes
    rows = [{"node": each.name, "line": line} for each in nodes for line in log_tail(Path(each.log), lines)]
    return Report(kind="sandbox-logs", rows=rows, data={"files": {each.name: each.log for each in nodes}})


def down_sandbox(state_dir: Path, name: str) -> Report:
    """Stops what runs and removes the files; nothing to do is fine."""
    directory = _directory(state_dir, name)
    stack = Stack.find(directory)
    stopped = [node.name for node in stack.state.nodes if node.process.alive()] if stack else []
    _clear(stack, directory)
    return Report(kind="sandbox-down", summary={"name": name, "stopped": stopped})


def _clear(stack: Stack | None, directory: Path) -> None:
    import shutil

    if stack is not None:
        stack.down()
    shutil.rmtree(directory, ignore_errors=True)


def _directory(state_dir: Path, name: str) -> Path:
    return state_dir / "sandbox" / name


def _report(kind: str, stack: Stack) -> Report:
    environ = {"EOSCTL_BOOTSTRAP_SERVER": stack.bootstrap_servers}
    groups = list(stack.state.topics)
    if len(groups) == 1:
        environ |= {"EOSCTL_CONNECT_URL": ",".join(stack.urls(groups[0])), "EOSCTL_GROUP_ID": groups[0]}
    return Report(
        kind=kind,
        rows=[_row(node) for node in stack.state.nodes],
        summary={"name": stack.state.name, "up": stack.alive(), "kafka_version": stack.state.kafka_version},
        data={"environ": environ, "directory": stack.state.directory, "topics": stack.state.topics},
        target={"group_id": groups[0] if len(groups) == 1 else None},
    )


def _row(node: Node) -> dict[str, object]:
    return {
        "node": node.name,
        "address": node.address,
        "running": node.process.alive(),
        "pid": node.pid,
        "group_id": node.group_id,
        "mode": node.mode,
        "log": node.log,
    }
