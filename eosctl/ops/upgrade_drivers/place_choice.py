"""Finds out where the mode of a workload's workers stands, before anything is written.

Images differ: most make properties of their variables, others take a mounted file, or all properties from one variable.
A variable that an image does not know changes nothing, and the pods would be restarted for it all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from shlex import quote

from eosctl.errors import RefusedError, UnauthorizedError, UsageError
from eosctl.ops.app import App
from eosctl.ops.upgrade_drivers.kubectl import Kubectl, Manifest, section
from eosctl.ops.upgrade_drivers.mode_places import (
    ModePlace,
    MountedProperties,
    PropertiesVariable,
    Variable,
    is_worker_config,
    mounted,
    place_in_spec,
    variables,
    worker_group,
)
from eosctl.ops.upgrade_drivers.workloads import Workload

DEFAULT_VARIABLE = "CONNECT_EXACTLY_ONCE_SOURCE_SUPPORT"
_MAKES_PROPERTIES = ("CONNECT_BOOTSTRAP_SERVERS", "CONNECT_GROUP_ID", "BOOTSTRAP_SERVERS", "GROUP_ID")


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
    """What was named, or the variable that most images take; raises RefusedError where that would change nothing.

    `watches`: somebody else makes the changes, and the ConfigMap may have got another name by them.
    """
    if workload.is_operated:
        if file is not None:
            raise UsageError(
                f"{workload.text} has the mode in its own spec; --configmap is for statefulset/ and deployment/",
                hint="Leave out --configmap and --key.",
            )
        return place_in_spec(workload)
    if file is not None:
        file = _renamed(app, kubectl, now, file) if watches else file
        _require_file(app, kubectl, workload, now, file)
        return file
    if variable is not None:
        value = variables(now).get(variable, {}).get("value")
        return PropertiesVariable(variable) if is_worker_config(value) else Variable(variable)
    _require_known(app, kubectl, workload, now)
    return Variable(DEFAULT_VARIABLE)


def require_changeable(app: App, kubectl: Kubectl, file: MountedProperties) -> None:
    """Raises RefusedError where nobody can change the ConfigMap."""
    if kubectl.get(app, file.thing).get("immutable"):
        raise RefusedError(
            f"{file.thing} is immutable: nothing can change it; nothing was written",
            hint="Make another ConfigMap that has the mode, and name it in the pods' template (kustomize and Helm do "
            "so where it is deployed from). --no-write waits for that, pass after pass; --print-patch shows what to "
            "change.",
        )


def _renamed(app: App, kubectl: Kubectl, now: Manifest, file: MountedProperties) -> MountedProperties:
    """The group's file in the ConfigMap that the pods mount now, where that is not the one that was named."""
    there = mounted(now)
    if file.configmap in there:
        return file
    for name in there:
        text = _data(app, kubectl, name).get(file.key)
        if is_worker_config(text) and worker_group(str(text), file.words) == app.target.group_id:
            return replace(file, configmap=name)
    return file


def _require_file(app: App, kubectl: Kubectl, workload: Workload, now: Manifest, file: MountedProperties) -> None:
    """The pods have it as a file, and it is the config of a worker of this group."""
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
    group = worker_group(str(data[file.key]), file.words)
    if group != app.target.group_id:
        says = "has no group.id" if group is None else f"is of group {group}"
        raise RefusedError(
            f"{file.words} {says}, and this is group {app.target.group_id}; nothing was written",
            hint="Compare -g with --configmap and --key.",
        )


def _require_known(app: App, kubectl: Kubectl, workload: Workload, now: Manifest) -> None:
    """Raises RefusedError where the template lacks the variable, and the workers' properties are found elsewhere."""
    there = variables(now)
    containers = section(now, "spec", "template", "spec").get("containers") or ()
    if DEFAULT_VARIABLE in there or there.keys() & {*_MAKES_PROPERTIES} or any("envFrom" in one for one in containers):
        return
    found = next(_elsewhere(app, kubectl, now), None)
    if found is not None:
        where, way = found
        raise RefusedError(
            f"{workload.text}: the variable {DEFAULT_VARIABLE} is not in the template of its pods, and {where} has the "
            "properties of a worker; nothing was written",
            hint=f"{way} edits them. --env-name names the variable, if the image takes one.",
        )


def _elsewhere(app: App, kubectl: Kubectl, now: Manifest) -> Iterator[tuple[str, str]]:
    """Where a worker's properties are found, and the options that name it; what may not be looked at is passed over."""
    for name, variable in variables(now).items():
        if is_worker_config(variable.get("value")):
            yield f"the variable {name}", f"--env-name {quote(name)}"
    for name in mounted(now):
        for key, text in _data(app, kubectl, name).items():
            if is_worker_config(text):
                yield f"configmap/{name}", f"--configmap {quote(name)} --key {quote(key)}"


def _data(app: App, kubectl: Kubectl, configmap: str) -> Manifest:
    try:
        return section(kubectl.find(app, f"configmap/{configmap}") or {}, "data")
    except UnauthorizedError:
        return {}
