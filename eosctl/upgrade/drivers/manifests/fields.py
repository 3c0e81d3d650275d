"""Facts from a Kubernetes manifest: fields and their writers, the worker's container, and pods down at once. Pure.

Fields have names, values and writers (`metadata.managedFields`). Source: Kubernetes, FieldsV1: `f:NAME` is a member,
`k:{"name":"NAME"}` an element of a list by its key, `.` the field.

The container is the one of a pod that runs the Connect worker: others, and init containers, are left alone. Sidecars
stand in the same list (`spec.template.spec.containers`), before the worker as often as behind it.

The number of pods down at once is that while a workload's controller restarts them. Source: Kubernetes, apps/v1:
DeploymentSpec.strategy, RollingUpdateDeployment.maxUnavailable (rounded down),
RollingUpdateStatefulSetStrategy.maxUnavailable (rounded up), Container.readinessProbe.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from eosctl.core.wording import counted
from eosctl.errors import RefusedError, UsageError
from eosctl.foreign import shell_word
from eosctl.upgrade import codes
from eosctl.upgrade.gate import Gate


class Named(Struct, frozen=True):
    """A step to the element of a list that has this `name`."""

    name: str


Manifest = Mapping[str, Any]
"""An object of Kubernetes, or a part of one, as its JSON has it."""
Path = tuple["str | int | Named", ...]


class Writer(Struct, frozen=True):
    """The last writer of a field, as the API server has it; `time` is RFC 3339."""

    manager: str
    operation: str
    time: str


PatchType = Literal["strategic", "merge", "json"]


class Patch(Struct, frozen=True):
    """`type` and `body` are what `kubectl patch` takes; `change` says it in words where the body has more than that."""

    thing: str
    type: PatchType
    body: Any
    change: str = ""

    def words(self) -> list[str]:
        """Return kubectl's arguments with the body, to be pasted: everybody on that machine can see secrets in it."""
        return [*self._head(), "--patch", self.text]

    def words_for_stdin(self) -> list[str]:
        """Return kubectl's arguments for a body, `text`, on its stdin."""
        return [*self._head(), "--patch-file", "/dev/stdin"]

    @property
    def text(self) -> str:
        """The body as kubectl reads it."""
        return json.dumps(self.body)

    def _head(self) -> list[str]:
        return ["patch", self.thing, "--type", self.type]


def field_words(path: Path) -> str:
    """Spell the field as a manifest is read: `spec.containers[connect].env[X].value`."""
    told = ""
    for step in path:
        if isinstance(step, Named):
            told += f"[{step.name}]"
        elif isinstance(step, int):
            told += f"[{step}]"
        else:
            told += f".{step}" if step.replace("_", "").isalnum() else f'["{step}"]'
    return told.removeprefix(".")


def value_at(manifest: Manifest, path: Path) -> Any:
    """Return the value of the field; None if it is absent."""
    found: object = manifest
    for step in path:
        found = _step(found, step)
    return found


def _step(found: object, step: str | int | Named) -> object:
    if isinstance(step, Named):
        elements = found if isinstance(found, list) else ()
        return next((each for each in elements if isinstance(each, Mapping) and each.get("name") == step.name), None)
    if isinstance(step, int):
        return found[step] if isinstance(found, list) and step < len(found) else None
    return found.get(step) if isinstance(found, Mapping) else None


def nested(path: Path, value: object) -> Any:
    """Make the body of a patch that sets this one field; raise TypeError if only a number identifies an element."""
    for step in reversed(path):
        if isinstance(step, int):
            raise TypeError(f"{field_words(path)}: a patch can't name an element by its place")
        value = [{"name": step.name, **value}] if isinstance(step, Named) and isinstance(value, dict) else {step: value}
    return value


def writers_of(manifest: Manifest, path: Path) -> tuple[Writer, ...]:
    """Return the owners of the field, or of a part of it, the newest last; empty if none is known."""
    return _writers([each for each in _managed(manifest) if _owns(each.get("fieldsV1") or {}, path)])


def newest_writer(manifest: Manifest) -> Writer | None:
    """Return the last writer of anything but the status."""
    writers = _writers([each for each in _managed(manifest) if not each.get("subresource")])
    return writers[-1] if writers else None


def _managed(manifest: Manifest) -> Sequence[Manifest]:
    return (manifest.get("metadata") or {}).get("managedFields") or ()


def _writers(entries: Sequence[Manifest]) -> tuple[Writer, ...]:
    found = (
        Writer(str(each.get("manager")), str(each.get("operation")), str(each.get("time", ""))) for each in entries
    )
    return tuple(sorted(found, key=lambda writer: writer.time))


def _owns(fields: Manifest, path: Path) -> bool:
    """Decide whether the set of fields has the path; a list or map owned as a whole ends it early."""
    node: object = fields
    for number, step in enumerate(path):
        if not node and number:
            return True
        key = f"k:{json.dumps({'name': step.name}, separators=(',', ':'))}" if isinstance(step, Named) else f"f:{step}"
        if not isinstance(node, Mapping) or key not in node:
            return False
        node = node[key]
    return True


Container = Manifest
OF_WORKERS = frozenset({"BOOTSTRAP_SERVERS", "GROUP_ID", "CONNECT_BOOTSTRAP_SERVERS", "CONNECT_GROUP_ID"})
"""What images of Connect make properties of, whatever else they are told."""


def worker_container(workload: str, manifest: Manifest, *, named: str | None, variable: str) -> str:
    """Return the worker's container: the one named, or the only one that has the variable or a worker's image.

    Raises UsageError if no container has that name, RefusedError if more than one may be the worker's.
    """
    pod = ((manifest.get("spec") or {}).get("template") or {}).get("spec") or {}
    containers: Sequence[Container] = pod.get("containers") or ()
    names = [str(each.get("name")) for each in containers]
    if named is not None:
        if named not in names:
            init = named in [each.get("name") for each in pod.get("initContainers") or ()]
            raise UsageError(
                f"--container {named}: {workload} has {'it as an init container' if init else 'none of that name'}",
                hint=f"Its containers are {', '.join(names)}.",
            )
        return named
    found = _narrowed(containers, (lambda each: variable in _variables(each), _has_worker_variables, _is_connect_image))
    if len(found) == 1:
        return str(found[0].get("name"))
    raise RefusedError(
        f"{workload} has the containers {', '.join(names)}, and nothing shows which of them is the worker: none or "
        f"several have the variable {variable}, or an image of Connect; nothing was written",
        hint=f"--container says which: {' or '.join(f'--container {shell_word(name)}' for name in names)}.",
    )


def _narrowed(containers: Sequence[Container], signs: Sequence[Callable[[Container], bool]]) -> Sequence[Container]:
    """Return the containers with the most telling signs; skip a sign that none of them has."""
    for sign in signs:
        containers = [each for each in containers if sign(each)] or containers
    return containers


def _variables(container: Container) -> set[str]:
    return {str(each.get("name")) for each in container.get("env") or ()}


def _has_worker_variables(container: Container) -> bool:
    return bool(_variables(container) & OF_WORKERS)


def _is_connect_image(container: Container) -> bool:
    """Recognise a Connect image by the last part of its name, as in `cp-kafka-connect` or `debezium/connect`."""
    return "connect" in str(container.get("image", "")).partition("@")[0].rpartition("/")[2].partition(":")[0]


def several_at_once(manifest: Manifest, *, container: str | None = None) -> tuple[str, ...]:
    """Return why more than one pod may be down at once; empty if the controller waits for each."""
    spec = manifest.get("spec") or {}
    replicas = int(spec.get("replicas", 1))
    update = spec.get("strategy") or spec.get("updateStrategy") or {}
    if replicas < 2 or update.get("type") == "OnDelete":
        return ()
    found = []
    if update.get("type") == "Recreate":
        found.append("strategy Recreate stops all pods before the first new one starts")
    down = _unavailable(update.get("rollingUpdate") or {}, replicas, rounds_up="updateStrategy" in spec)
    if down > 1:
        found.append(f"maxUnavailable lets {counted(down, 'pod')} be down at once")
    containers = ((spec.get("template") or {}).get("spec") or {}).get("containers") or ()
    ours = [each for each in containers if container in (None, each.get("name"))]
    if ours and not any("readinessProbe" in each for each in ours):
        found.append("no container has a readinessProbe, so a pod counts as Ready as soon as its process runs")
    return tuple(found)


def _unavailable(rolling: Manifest, replicas: int, *, rounds_up: bool) -> int:
    """Return how many pods maxUnavailable allows to be down; Kubernetes' default if it is not set."""
    given = rolling.get("maxUnavailable")
    if given is None:
        return 1 if rounds_up else max(1, replicas // 4)
    text = str(given)
    if not text.endswith("%"):
        return int(text)
    percent = int(text.removesuffix("%")) * replicas
    return -(-percent // 100) if rounds_up else percent // 100


def judge_rolling(found: Mapping[str, Sequence[str]], *, accepted: bool) -> Gate:
    """Judge the gate workload_rolls for all workloads: name -> what `several_at_once` found."""
    failures = [f"{name}: {'; '.join(reasons)}" for name, reasons in found.items() if reasons]
    if failures:
        return Gate(codes.WORKLOAD_ROLLS, "fail", "; ".join(failures), codes.WORKLOAD_ROLLS.next, accepted=accepted)
    return Gate(codes.WORKLOAD_ROLLS, "pass", "one pod at a time is down while they are restarted")
