"""The container of a pod that runs the Connect worker: others, and init containers, are left alone. Pure.

Sidecars stand in the same list (`spec.template.spec.containers`), before the worker as often as behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from eosctl.errors import RefusedError, UsageError
from eosctl.foreign import shell_word
from eosctl.upgrade.drivers.manifests.fields import Manifest

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
