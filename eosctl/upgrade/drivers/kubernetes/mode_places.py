"""The places of the mode in workloads, and how to change it there: one small class per kind of image.

The place is a variable of its own, one variable with all properties, a properties file in a ConfigMap, or the resource
from which an operator makes the pods. Only one line is changed; everything around it stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.java.properties import parse_properties, set_property
from eosctl.core.workers.modes import Mode
from eosctl.deadline import Event
from eosctl.errors import EosctlError, InputFileError, NotFoundError
from eosctl.state.backups import backup_folder, write_blocks
from eosctl.upgrade.drivers import SETTING
from eosctl.upgrade.drivers.kubernetes.kubectl import Kubectl, section
from eosctl.upgrade.drivers.kubernetes.workloads import CONFLUENT, Workload
from eosctl.upgrade.drivers.manifests.fields import (
    Manifest,
    Named,
    Patch,
    PatchType,
    Path,
    field_words,
    nested,
    value_at,
)
from eosctl.upgrade.drivers.programs import stamp

ANNOTATION = f"eosctl/{SETTING}"
"""In a template whose pods take the mode from a file: a pod is recreated where its template changes, and not else."""
_ANNOTATION_PATH: Path = ("spec", "template", "metadata", "annotations", ANNOTATION)
_OVERRIDES: Path = ("spec", "configOverrides", "server")
_CONFLICT, _TRIES = "(Conflict)", 5


class FoundMode(Struct, frozen=True):
    """The field of the mode: its object, as it is now, and the path in it; `value` None means absent.

    `is_file`: the field has all properties of a worker.
    """

    thing: str
    manifest: Manifest
    path: Path
    value: str | None
    is_file: bool = False

    @property
    def words(self) -> str:
        """The field, and the property in it."""
        return f"{field_words(self.path)}{f' ({SETTING})' if self.is_file else ''}"


class ModePlace(Protocol):
    """The place where the mode of one workload stands."""

    def action(self, kubectl: Kubectl, workload: Workload, mode: Mode, /) -> str:
        """Return what `change` does, for the plan."""

    def find(self, app: App, kubectl: Kubectl, workload: Workload, now: Manifest, /, *options: str) -> FoundMode:
        """Return the field as it is now; `options` are kubectl's for objects read besides `now`. Raise EosctlError."""

    def made_as(self, app: App, kubectl: Kubectl, workload: Workload, now: Manifest, /) -> str | None:
        """Return the mode of pods made from the template as it is now; None if it is unknown."""

    def patches(self, app: App, kubectl: Kubectl, workload: Workload, mode: Mode, /) -> list[Patch]:
        """Return the patches that change the mode, as the cluster is now; raise EosctlError."""

    def change(self, app: App, kubectl: Kubectl, workload: Workload, mode: Mode, /) -> str | None:
        """Change the mode, safe to repeat, and return the path of a backup, if one was made; raise EosctlError."""


class Variable(Struct, frozen=True):
    """An environment variable of the pods, as most images have it."""

    name: str

    def action(self, kubectl: Kubectl, workload: Workload, mode: Mode) -> str:
        return kubectl.line(*self._words(workload, mode))

    def find(self, _app: App, _kubectl: Kubectl, workload: Workload, now: Manifest, *_options: str) -> FoundMode:
        path = _variable_path(workload, self.name)
        value = value_at(now, path)
        return FoundMode(workload.text, now, path, None if value is None else str(value))

    def made_as(self, app: App, kubectl: Kubectl, workload: Workload, now: Manifest) -> str | None:
        return self.find(app, kubectl, workload, now).value

    def patches(self, app: App, kubectl: Kubectl, workload: Workload, mode: Mode) -> list[Patch]:
        *path, _value = _variable_path(workload, self.name)
        body: dict[str, object] = {"value": mode.value}
        there = value_at(kubectl.get(app, workload.text), tuple(path))
        if there and "valueFrom" in there:
            body["valueFrom"] = None
        return [Patch(workload.text, "strategic", nested(tuple(path), body))]

    def change(self, app: App, kubectl: Kubectl, workload: Workload, mode: Mode) -> None:
        kubectl.run(app, *self._words(workload, mode))

    def _words(self, workload: Workload, mode: Mode) -> list[str]:
        container = ["--containers", workload.container] if workload.container else []
        return ["set", "env", workload.text, *container, f"{self.name}={mode.value}"]


class PropertiesVariable(Struct, frozen=True):
    """One environment variable that has all properties of the worker, a line each."""

    name: str

    def action(self, _kubectl: Kubectl, workload: Workload, mode: Mode) -> str:
        return f"set {SETTING}={mode.value} in the properties that variable {self.name} of {workload.text} has"

    def find(self, _app: App, _kubectl: Kubectl, workload: Workload, now: Manifest, *_options: str) -> FoundMode:
        path = _variable_path(workload, self.name)
        said = _said(str(value_at(now, path) or ""), f"variable {self.name}")
        return FoundMode(workload.text, now, path, said, is_file=True)

    def made_as(self, app: App, kubectl: Kubectl, workload: Workload, now: Manifest) -> str | None:
        return self.find(app, kubectl, workload, now).value

    def patches(self, app: App, kubectl: Kubectl, workload: Workload, mode: Mode) -> list[Patch]:
        path = _variable_path(workload, self.name)
        text = str(value_at(kubectl.get(app, workload.text), path) or "")
        body = nested(path, set_property(text, SETTING, mode.value))
        return [Patch(workload.text, "strategic", body, change=self.action(kubectl, workload, mode))]

    def change(self, app: App, kubectl: Kubectl, workload: Workload, mode: Mode) -> str | None:
        field = (workload.text, _variable_path(workload, self.name))
        return _edit(app, kubectl, field, f"{workload.kind}-{workload.name}-{self.name}", mode, "strategic")


class ResourceConfig(Struct, frozen=True):
    """The resource from which Strimzi's operator makes the pods."""

    def action(self, kubectl: Kubectl, workload: Workload, mode: Mode) -> str:
        return kubectl.line(*self._patch(workload, mode).words())

    def find(self, _app: App, _kubectl: Kubectl, workload: Workload, now: Manifest, *_options: str) -> FoundMode:
        path = (*workload.config, SETTING)
        value = value_at(now, path)
        return FoundMode(workload.text, now, path, None if value is None else str(value))

    def made_as(self, app: App, kubectl: Kubectl, workload: Workload, now: Manifest) -> str | None:
        return self.find(app, kubectl, workload, now).value

    def patches(self, _app: App, _kubectl: Kubectl, workload: Workload, mode: Mode) -> list[Patch]:
        return [self._patch(workload, mode)]

    def change(self, app: App, kubectl: Kubectl, workload: Workload, mode: Mode) -> None:
        kubectl.patch(app, self._patch(workload, mode))

    def _patch(self, workload: Workload, mode: Mode) -> Patch:
        path = (*workload.config, SETTING)
        if all(isinstance(step, str) for step in path):
            return Patch(workload.text, "merge", nested(path, mode.value))
        place = "/" + "/".join(str(step) for step in path)
        return Patch(workload.text, "json", [{"op": "add", "path": place, "value": mode.value}])


class ServerOverrides(Struct, frozen=True):
    """The resource from which Confluent's operator makes the pods: a list of `NAME=VALUE`.

    Source: Confluent for Kubernetes, "Configuration overrides"; tried with a resource of that shape only.
    """

    def action(self, _kubectl: Kubectl, workload: Workload, mode: Mode) -> str:
        return self._words(workload, mode)

    def find(self, _app: App, _kubectl: Kubectl, workload: Workload, now: Manifest, *_options: str) -> FoundMode:
        said = [line.partition("=") for line in _overrides(now)]
        values = [value.strip() for name, _equals, value in said if name.strip() == SETTING]
        return FoundMode(workload.text, now, _OVERRIDES, values[-1] if values else None)

    def made_as(self, app: App, kubectl: Kubectl, workload: Workload, now: Manifest) -> str | None:
        return self.find(app, kubectl, workload, now).value

    def patches(self, app: App, kubectl: Kubectl, workload: Workload, mode: Mode) -> list[Patch]:
        return [self._patch(kubectl.get(app, workload.text), workload, mode)]

    def change(self, app: App, kubectl: Kubectl, workload: Workload, mode: Mode) -> None:
        _patch_what_was_read(app, kubectl, workload.text, lambda now: self._patch(now, workload, mode))

    def _patch(self, now: Manifest, workload: Workload, mode: Mode) -> Patch:
        others = [line for line in _overrides(now) if line.partition("=")[0].strip() != SETTING]
        body = nested(_OVERRIDES, [*others, f"{SETTING}={mode.value}"])
        return Patch(workload.text, "merge", body, change=self._words(workload, mode))

    def _words(self, workload: Workload, mode: Mode) -> str:
        return f"set {SETTING}={mode.value} in {field_words(_OVERRIDES)} of {workload.text}"


def place_in_spec(workload: Workload) -> ModePlace:
    """Return the place of the mode in a resource from which an operator makes the pods."""
    return ServerOverrides() if workload.kind == CONFLUENT else ResourceConfig()


def _overrides(now: Manifest) -> list[str]:
    return [str(line) for line in value_at(now, _OVERRIDES) or ()]


class MountedProperties(Struct, frozen=True):
    """A properties file in a key of a ConfigMap; an annotation of the template makes new pods."""

    configmap: str
    key: str

    @property
    def thing(self) -> str:
        """The ConfigMap, as kubectl is given it."""
        return f"configmap/{self.configmap}"

    @property
    def words(self) -> str:
        """The file, for a sentence."""
        return f"{self.key} of {self.thing}"

    def action(self, _kubectl: Kubectl, workload: Workload, mode: Mode) -> str:
        return f"{self._change(mode)}, and annotation {ANNOTATION} in the template of {workload.text}"

    def find(self, app: App, kubectl: Kubectl, workload: Workload, now: Manifest, *options: str) -> FoundMode:
        """Find the file in the ConfigMap that the template mounts now: kustomize, for one, may have renamed it."""
        for name in sorted(mounted(now), key=lambda name: name != self.configmap):
            found = kubectl.find(app, f"configmap/{name}", *options)
            text = section(found or {}, "data").get(self.key)
            if found is not None and text is not None:
                said = _said(str(text), f"configmap/{name}, {self.key}")
                return FoundMode(f"configmap/{name}", found, ("data", self.key), said, is_file=True)
        raise NotFoundError(
            f"{workload.text} mounts no ConfigMap that has the key {self.key}", hint="Check --configmap and --key."
        )

    def made_as(self, app: App, kubectl: Kubectl, workload: Workload, now: Manifest) -> str | None:
        """Return the mode in the file if the template's annotation agrees: pods may be older than the file."""
        said = self.find(app, kubectl, workload, now).value
        return said if said == value_at(now, _ANNOTATION_PATH) else None

    def patches(self, app: App, kubectl: Kubectl, workload: Workload, mode: Mode) -> list[Patch]:
        text = str(section(kubectl.get(app, self.thing), "data")[self.key])
        body = nested(("data", self.key), set_property(text, SETTING, mode.value))
        patch = Patch(self.thing, "merge", body, change=self._change(mode))
        return [patch, self._annotation(workload, mode)]

    def change(self, app: App, kubectl: Kubectl, workload: Workload, mode: Mode) -> str | None:
        field = (self.thing, ("data", self.key))
        backup = _edit(app, kubectl, field, f"configmap-{self.configmap}-{self.key}", mode, "merge")
        kubectl.patch(app, self._annotation(workload, mode))
        return backup

    def _change(self, mode: Mode) -> str:
        return f"set {SETTING}={mode.value} in {self.words}"

    def _annotation(self, workload: Workload, mode: Mode) -> Patch:
        return Patch(workload.text, "merge", nested(_ANNOTATION_PATH, mode.value))


def mounted(workload: Manifest) -> list[str]:
    """Return the ConfigMaps that pods mount as files, or use a key of in a variable."""
    volumes = section(workload, "spec", "template", "spec").get("volumes") or ()
    sources = [source for each in volumes for source in (each, *(section(each, "projected").get("sources") or ()))]
    names = [section(source, "configMap").get("name") for source in sources]
    names += [section(each, "valueFrom", "configMapKeyRef").get("name") for each in variables(workload).values()]
    return list(dict.fromkeys(str(name) for name in names if name))


def worker_group(text: str, source: str) -> str | None:
    """Return the group.id of properties, which every Connect worker has; raise InputFileError."""
    return parse_properties(text, source=source).values.get("group.id")


def is_worker_config(text: object) -> bool:
    """Decide whether these are the properties of a Connect worker."""
    try:
        return worker_group(str(text or ""), "text") is not None
    except InputFileError:
        return False


def variables(workload: Manifest, container: str | None = None) -> Mapping[str, Manifest]:
    """Return the environment variables of the pods by name, as the template has them: of one container, or of all."""
    return {str(each["name"]): each for one in containers_of(workload, container) for each in one.get("env") or ()}


def containers_of(workload: Manifest, name: str | None) -> list[Manifest]:
    """Return the containers of the pods' template: the one of this name, or all."""
    found = section(workload, "spec", "template", "spec").get("containers") or ()
    return [each for each in found if name in (None, each.get("name"))]


def _edit(app: App, kubectl: Kubectl, field: tuple[str, Path], name: str, mode: Mode, kind: PatchType) -> str | None:
    """Set the mode in the properties of a field (object, path), if the object is still as it was read.

    Gives the path of a backup called `name`, None where nothing was to do. Raises EosctlError.
    """
    thing, path = field
    backups: list[str] = []

    def made(now: Manifest) -> Patch | None:
        before = str(value_at(now, path) or "")
        after = set_property(before, SETTING, mode.value)
        if after == before:
            backups.clear()
            return None
        free = backup_folder(app) / f"{name}.{stamp(app.clock)}.bak"
        backup = write_blocks(free, [before.encode()], name=lambda: free)
        app.on_event(Event(f"{thing}: what it was before is kept in {backup}", backup=str(backup)))
        backups.append(str(backup))
        return Patch(thing, kind, nested(path, after))

    _patch_what_was_read(app, kubectl, thing, made)
    return backups[-1] if backups else None


def _patch_what_was_read(app: App, kubectl: Kubectl, thing: str, made: Callable[[Manifest], Patch | None]) -> None:
    """Patch an object with what `made` returns for its present state; None changes nothing. Raise EosctlError.

    The API server refuses a patch with the resourceVersion of an object that was written since; then the patch is made
    again from the present state.
    """
    tries_left = _TRIES
    while True:
        now = kubectl.get(app, thing)
        patch = made(now)
        if patch is None:
            return
        version = nested(("metadata", "resourceVersion"), section(now, "metadata").get("resourceVersion"))
        tries_left -= 1
        try:
            kubectl.patch(app, replace(patch, body={**version, **patch.body}))
        except EosctlError as exc:
            if _CONFLICT not in exc.message or not tries_left:
                raise
        else:
            return


def _variable_path(workload: Workload, name: str) -> Path:
    return ("spec", "template", "spec", "containers", Named(workload.container or ""), "env", Named(name), "value")


def _said(text: str, source: str) -> str | None:
    return parse_properties(text, source=source).values.get(SETTING)
