"""Finds the place of the mode in a workload, before anything is written.

Images differ: most make properties of their variables, others take a mounted file, or all properties from one variable.
A variable that an image does not know changes nothing, and the pods would be restarted for it all the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from eosctl.app import App
from eosctl.errors import RefusedError, UnauthorizedError, UsageError
from eosctl.foreign import shell_word
from eosctl.upgrade.drivers.kubernetes.kubectl import Kubectl, section
from eosctl.upgrade.drivers.kubernetes.mode_places import (
    ModePlace,
    MountedProperties,
    PropertiesVariable,
    Variable,
    containers_of,
    is_worker_config,
    mounted,
    place_in_spec,
    variables,
    worker_group,
)
from eosctl.upgrade.drivers.kubernetes.workloads import Workload
from eosctl.upgrade.drivers.manifests.fields import OF_WORKERS, Manifest

DEFAULT_VARIABLE = "CONNECT_EXACTLY_ONCE_SOURCE_SUPPORT"
_USUAL = "EXACTLY_ONCE_SOURCE_SUPPORT"  # how the name of a variable ends that has the mode, and nothing besides


def choose_place(
    app: App,
    kubectl: Kubectl,
    workload: Workload,
    now: Manifest,
    *,
    variable: str | None,
    file: MountedProperties | None,
    watches: bool = False,
) -> ModePlace:
    """Return the named place, or the variable that most images take; raise RefusedError if it would change nothing.

    `watches`: somebody else makes the changes, which may have renamed the ConfigMap.
    """
    if workload.is_operated:
        given = "--configmap" if file is not None else "--env-name" if variable is not None else None
        if given is not None:
            raise UsageError(
                f"{workload.text} has the mode in its own spec; {given} is for statefulset/ and deployment/",
                hint="Leave out --configmap, --key and --env-name.",
            )
        return place_in_spec(workload)
    if file is not None:
        file = _renamed(app, kubectl, now, file) if watches else file
        _require_file(app, kubectl, workload, now, file)
        return file
    if variable is not None:
        return _named_variable(app, kubectl, workload, now, variable)
    _require_known(app, kubectl, workload, now)
    return Variable(DEFAULT_VARIABLE)


def _named_variable(app: App, kubectl: Kubectl, workload: Workload, now: Manifest, name: str) -> ModePlace:
    """Choose a variable of the mode alone or of all properties; raise RefusedError if properties would be lost.

    `kubectl set env` replaces whatever the variable has, also what it takes from another object.
    """
    found = variables(now, workload.container).get(name, {})
    words = f"variable {name} of {workload.text}"
    source = found.get("valueFrom")
    if source:
        _require_replaceable(app, kubectl, f"the {words}", source, usual=name.upper().endswith(_USUAL))
    elif is_worker_config(found.get("value")):
        _require_group(app, str(found["value"]), words, hint="Compare -g with --env-name.")
        return PropertiesVariable(name)
    return Variable(name)


def _require_replaceable(app: App, kubectl: Kubectl, words: str, source: Manifest, *, usual: bool) -> None:
    """Raise RefusedError if a variable takes all properties from another object, or may do so."""
    named = section(source, "configMapKeyRef")
    name, key = str(named.get("name")), str(named.get("key"))
    text = _data(app, kubectl, name).get(key) if named else None
    if is_worker_config(text):
        raise RefusedError(
            f"{words} has the properties of a worker, from configmap/{name}; nothing was written",
            hint=f"--configmap {shell_word(name)} --key {shell_word(key)} edits them.",
        )
    if text is None and not usual:
        raise RefusedError(
            f"{words} is taken from elsewhere ({', '.join(source)}), which eosctl does not read, and all properties may"
            " be in it; nothing was written",
            hint="Give it a value in the template, or make the changes with your own tool: --no-write waits for them.",
        )


def require_changeable(app: App, kubectl: Kubectl, file: MountedProperties) -> None:
    """Raise RefusedError if the ConfigMap is immutable."""
    if kubectl.get(app, file.thing).get("immutable"):
        raise RefusedError(
            f"{file.thing} is immutable: nothing can change it; nothing was written",
            hint="Make another ConfigMap that has the mode, and name it in the pods' template (kustomize and Helm do "
            "so where it is deployed from). --no-write waits for that, pass after pass; --print-patch shows what to "
            "change.",
        )


def _renamed(app: App, kubectl: Kubectl, now: Manifest, file: MountedProperties) -> MountedProperties:
    """Return the group's file in the ConfigMap that the pods mount now, if it is not the one named."""
    there = mounted(now)
    if file.configmap in there:
        return file
    for name in there:
        text = _data(app, kubectl, name).get(file.key)
        if is_worker_config(text) and worker_group(str(text), file.words) == app.target.group_id:
            return replace(file, configmap=name)
    return file


def _require_file(app: App, kubectl: Kubectl, workload: Workload, now: Manifest, file: MountedProperties) -> None:
    """Require that the pods mount the file, and that it is the config of a worker of this group."""
    there = mounted(now)
    if file.configmap not in there:
        raise RefusedError(
            f"{workload.text} does not mount {file.thing}: changing it would change none of its workers; nothing was "
            "written",
            hint=f"It mounts {', '.join(f'configmap/{name}' for name in there) or 'none'}. Check --configmap.",
        )
    data = section(kubectl.get(app, file.thing), "data")
    if file.key not in data:
        raise RefusedError(
            f"{file.thing} has no key {file.key}; nothing was written",
            hint=f"It has {', '.join(map(str, data)) or 'none'}. Check --key.",
        )
    _require_group(app, str(data[file.key]), file.words, hint="Compare -g with --configmap and --key.")


def _require_group(app: App, text: str, words: str, *, hint: str) -> None:
    """Raise RefusedError if these are not the properties of a worker of this group."""
    group = worker_group(text, words)
    if group != app.target.group_id:
        says = "has no group.id" if group is None else f"is of group {group}"
        raise RefusedError(f"{words} {says}, and this is group {app.target.group_id}; nothing was written", hint=hint)


def _require_known(app: App, kubectl: Kubectl, workload: Workload, now: Manifest) -> None:
    """Raise RefusedError if nothing in the worker's container shows that its image makes properties of variables.

    The sidecars' variables say nothing of it.
    """
    there = variables(now, workload.container)
    if there.keys() & {DEFAULT_VARIABLE, *OF_WORKERS} or any(
        "envFrom" in one for one in containers_of(now, workload.container)
    ):
        return
    lacks = f"{workload.text}: the variable {DEFAULT_VARIABLE} is not in the template of its pods"
    found = next(_elsewhere(app, kubectl, workload, now), None)
    if found is not None:
        where, way = found
        raise RefusedError(
            f"{lacks}, and {where} has the properties of a worker; nothing was written",
            hint=f"{way} edits them. --env-name names the variable, if the image takes one.",
        )
    raise RefusedError(
        f"{lacks}, and nothing shows that its image makes properties of variables; nothing was written",
        hint=f"--env-name {DEFAULT_VARIABLE} sets it all the same, if the image takes it. If the mode is in a mounted "
        "file: --configmap and --key. If that is in a Secret: --no-write waits until you have changed it.",
    )


def _elsewhere(app: App, kubectl: Kubectl, workload: Workload, now: Manifest) -> Iterator[tuple[str, str]]:
    """Find places with a worker's properties, and the options that name them; skip what may not be read."""
    for name, variable in variables(now, workload.container).items():
        if is_worker_config(variable.get("value")):
            yield f"the variable {name}", f"--env-name {shell_word(name)}"
    for name in mounted(now):
        for key, text in _data(app, kubectl, name).items():
            if is_worker_config(text):
                yield f"configmap/{name}", f"--configmap {shell_word(name)} --key {shell_word(key)}"


def _data(app: App, kubectl: Kubectl, configmap: str) -> Manifest:
    try:
        return section(kubectl.find(app, f"configmap/{configmap}") or {}, "data")
    except UnauthorizedError:
        return {}
