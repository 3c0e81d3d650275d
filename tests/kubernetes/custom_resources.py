"""Resource definitions of the shape that operators' own have, and a thread in an operator's place.

Strimzi 0.49: kafka.strimzi.io serves v1, which asks for members that v1beta2 lacks, and keeps objects as v1beta2. What
eosctl reads and writes is declared; the rest is left open. No operator runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tests.kubernetes.control_plane import ApiError, ControlPlane
from tests.sandbox_fixtures import wait_until

_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def define(
    plane: ControlPlane, kind: str, group: str, versions: Mapping[str, Sequence[str] | Mapping[str, Any]]
) -> None:
    """A kind with a status of its own: version -> what its spec requires, or all of its spec's schema.

    The last version is the one that is kept.
    """
    singular = kind.lower()
    made = [_version(name, required, stored=name == [*versions][-1]) for name, required in versions.items()]
    names = {"kind": kind, "singular": singular, "plural": f"{singular}s"}
    path = f"{_DEFINITIONS}/{singular}s.{group}"
    spec = {"group": group, "names": names, "scope": "Namespaced", "versions": made}
    plane.create(_DEFINITIONS, {"metadata": {"name": f"{singular}s.{group}"}, "spec": spec})
    wait_until(lambda: _established(plane.api("GET", path)), what=f"{kind} to be served", timeout_s=60)


def _version(name: str, spec: Sequence[str] | Mapping[str, Any], *, stored: bool) -> Mapping[str, Any]:
    if not isinstance(spec, Mapping):
        spec = {**_OPEN, **({"required": list(spec)} if spec else {})}
    schema = {"type": "object", "required": ["spec"], "properties": {"spec": spec, "status": _OPEN}}
    versioned = {"openAPIV3Schema": schema}
    return {"name": name, "served": True, "storage": stored, "schema": versioned, "subresources": {"status": {}}}


def _established(definition: Mapping[str, Any]) -> bool:
    conditions = definition.get("status", {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


@contextmanager
def operator(reconcile: Callable[[], None]) -> Iterator[None]:
    """Does what an operator would, again and again until the block ends."""
    enough, failures = threading.Event(), list[BaseException]()

    def loop() -> None:
        while not enough.wait(0.3):
            try:
                reconcile()
            except (ApiError, OSError):  # somebody else wrote: the next time
                continue
            except BaseException as exc:
                failures.append(exc)
                return

    thread = threading.Thread(target=loop, name="operator", daemon=True)
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join(30)
    assert failures == []
