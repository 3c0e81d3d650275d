"""Pods of a StatefulSet that never get Ready: its controller leaves them alone, whatever becomes of its spec.

Kubernetes, "StatefulSets: forced rollback": such a pod must be deleted. eosctl deletes those that its plan named.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct

from eosctl.app import App
from eosctl.errors import DeadlineError
from eosctl.events import Event
from eosctl.upgrade.drivers.kubernetes.kubectl import Kubectl
from eosctl.upgrade.drivers.manifests.pods import Pod

_STUCK_S = 15.0


class StuckPod(Struct, frozen=True):
    """A pod that was not Ready when an upgrade was planned; `trouble` has the reason, in a sentence."""

    name: str
    workload: str
    trouble: str


def trouble(app: App, kubectl: Kubectl, pod: Pod) -> str:
    """Describe a pod: why it is not Ready, and what its container logged last."""
    lines = kubectl.last_lines(app, pod.name, pod.container) if pod.container else ()
    last = f"; container {pod.container} logged last: {' / '.join(lines)}" if lines else ""
    return f"pod {pod.name} is not Ready: {pod.reason}{last}"


class StuckPods:
    """The stuck pods of a StatefulSet during a rollout; those agreed on are deleted.

    `agreed` are uids; None if somebody else deletes pods.
    """

    def __init__(self, kubectl: Kubectl, agreed: Collection[str] | None) -> None:
        self._kubectl, self._deletes, self._agreed = kubectl, agreed is not None, frozenset(agreed or ())
        self._since_s: dict[str, float] = {}
        self._told: set[str] = set()

    def look(self, app: App, pods: Sequence[Pod], revision: str) -> None:
        """Delete agreed pods of a former revision that are not Ready for some time; warn of others, once."""
        now_s = app.clock.monotonic_s()
        stuck = {pod.uid: pod for pod in pods if not pod.ready and pod.revision != revision}
        for uid in self._since_s.keys() - stuck.keys():
            del self._since_s[uid]
        for uid, pod in stuck.items():
            if now_s - self._since_s.setdefault(uid, now_s) < _STUCK_S or uid in self._told:
                continue
            self._told.add(uid)
            end = "its controller does not replace such a pod"
            words = f"pod {pod.name}: it is of the former revision and not Ready ({pod.reason}), and {end}"
            if uid in self._agreed:
                app.on_event(Event(f"{words}: deleting it", warning=True))
                self._kubectl.run(app, "delete", f"pod/{pod.name}", "--wait=false")
            else:
                app.on_event(Event(f"{words}; {self._way_out(pod)}", warning=True))

    def _way_out(self, pod: Pod) -> str:
        if self._deletes:
            return "--resume asks whether to delete it"
        return f"delete it: {self._kubectl.line('delete', f'pod/{pod.name}')}"

    def timed_out(self, app: App, workload: str, pods: Sequence[Pod], *, timeout_s: float) -> DeadlineError:
        """Make the error for a rollout that does not end: each pod that is not Ready, and how to go on."""
        there = [trouble(app, self._kubectl, pod) for pod in pods if not pod.ready]
        unready = "; ".join(there) or "every pod that is there is Ready"
        left = [pod for pod in pods if pod.uid in self._told - self._agreed]
        asks = "".join(f"Pod {pod.name}: {self._way_out(pod)}. " for pod in left)
        return DeadlineError(
            f"{workload}: not rolled out after {timeout_s:g} s; {unready}",
            hint=f"{asks}See its events: {self._kubectl.line('describe', workload)}; --settle-timeout gives more time.",
        )
