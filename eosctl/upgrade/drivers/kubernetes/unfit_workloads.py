"""Refused workloads: an operator would revert a change, or it would not reach all pods."""

from __future__ import annotations

import json

from eosctl.errors import RefusedError
from eosctl.foreign import shell_word
from eosctl.upgrade.drivers import SETTING
from eosctl.upgrade.drivers.kubernetes.kubectl import section
from eosctl.upgrade.drivers.kubernetes.workloads import deletes_by_hand
from eosctl.upgrade.drivers.manifests.fields import Manifest

# annotation -> whose operator then leaves the resource alone
_PAUSES = {"strimzi.io/pause-reconciliation": "Strimzi's", "platform.confluent.io/block-reconcile": "Confluent's"}


def refuse_owned(workload: str, now: Manifest) -> None:
    """Raise RefusedError if an operator made the workload and would revert changes, as Confluent's does."""
    for owner in section(now, "metadata").get("ownerReferences") or ():
        if owner.get("controller"):
            kind, version = str(owner.get("kind")), str(owner.get("apiVersion"))
            whose = f"{kind}/{owner.get('name')} ({version})"
            way = "--driver print waits for each worker, and checks it."
            if version.startswith("platform.confluent.io/") and kind == "Connect":
                way = f"--workload connect/{shell_word(str(owner.get('name')))} does so."
            raise RefusedError(
                f"{workload} is made by {whose}, whose operator reverts changes there; nothing was written",
                hint=f"Set {SETTING} in that resource. {way}",
            )


def not_rolling(workload: str, now: Manifest) -> tuple[str, list[str]]:
    """Return why a change would not reach all pods, and the kubectl arguments that fix it; empty if it would."""
    partition = section(now, "spec", "updateStrategy", "rollingUpdate").get("partition") or 0
    if partition and not deletes_by_hand(now):
        patch = json.dumps({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})
        reason = f"has updateStrategy.rollingUpdate.partition {partition}: pods below that ordinal keep the old mode"
        return reason, ["patch", workload, "--type", "merge", "--patch", patch]
    if section(now, "spec").get("paused"):
        return "is paused: its pods would not be restarted", ["rollout", "resume", workload]
    for annotation, whose in _PAUSES.items():
        if section(now, "metadata", "annotations").get(annotation) == "true":
            words = ["annotate", workload, f"{annotation}-"]
            return f"is paused: {whose} operator would not restart its pods", words
    return "", []
