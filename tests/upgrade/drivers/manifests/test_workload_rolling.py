"""How many pods are down at once, by the manifest: as Kubernetes rounds, and with a probe or without."""

from __future__ import annotations

from typing import Any

import pytest

from eosctl.upgrade.drivers.manifests.fields import several_at_once

PROBE: dict[str, Any] = {"name": "connect", "readinessProbe": {}}
SIDECAR = {"name": "proxy"}


def manifest(containers: list[dict[str, Any]], replicas: int = 3, **spec: Any) -> dict[str, Any]:
    return {"spec": {"replicas": replicas, "template": {"spec": {"containers": containers}}, **spec}}


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (manifest([PROBE]), None),
        (manifest([SIDECAR, PROBE]), None),
        (manifest([SIDECAR]), "readinessProbe"),
        (manifest([SIDECAR], replicas=1), None),
        (manifest([SIDECAR], updateStrategy={"type": "OnDelete"}), None),
        (manifest([PROBE], strategy={"type": "Recreate"}), "Recreate"),
        (manifest([PROBE], replicas=1, strategy={"type": "Recreate"}), None),
        (manifest([PROBE], replicas=8), "maxUnavailable lets 2 pods"),  # 25 % is the default of a Deployment
        (manifest([PROBE], replicas=7), None),
        (manifest([PROBE], replicas=8, updateStrategy={"type": "RollingUpdate"}), None),
        (manifest([PROBE], strategy={"rollingUpdate": {"maxUnavailable": 0}}), None),
        (manifest([PROBE], strategy={"rollingUpdate": {"maxUnavailable": 2}}), "maxUnavailable lets 2 pods"),
        (manifest([PROBE], strategy={"rollingUpdate": {"maxUnavailable": "50%"}}), None),  # 1.5, rounded down
        (manifest([PROBE], updateStrategy={"rollingUpdate": {"maxUnavailable": "50%"}}), "lets 2 pods"),  # up
    ],
)
def test_how_many_are_down_at_once(given: dict[str, Any], found: str | None) -> None:
    """The plan said "one after the other" of all of them; without a probe 0 of 3 workers answered."""
    reasons = several_at_once(given)
    assert [str(found) in reason for reason in reasons] == ([True] if found else [])
