"""The driver `kubernetes`: changes workloads with kubectl, whose controllers or operator then restart the pods.

mode_places.py knows the place of the mode: mostly an environment variable of the pod, for a Strimzi KafkaConnect its
spec.config. Controllers restart pod after pod, so that a whole pass is one step. With `OnDelete` a controller restarts
none: there eosctl deletes the pods (pods.py). It never changes how a workload is updated.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from msgspec import Struct, field
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.wording import counted
from eosctl.core.workers.modes import TARGETS, Mode
from eosctl.errors import RefusedError, UsageError
from eosctl.group.observed import WorkerObservation
from eosctl.upgrade import codes
from eosctl.upgrade.drivers import DriverResult, TakenBackError
from eosctl.upgrade.drivers.kubernetes.kubectl import Kubectl
from eosctl.upgrade.drivers.kubernetes.mode_places import ModePlace, MountedProperties, Variable, place_in_spec
from eosctl.upgrade.drivers.kubernetes.place_choice import DEFAULT_VARIABLE, choose_place, require_changeable
from eosctl.upgrade.drivers.kubernetes.pods import StuckPod, not_rolling, refuse_owned, replace_pods, trouble
from eosctl.upgrade.drivers.kubernetes.rollouts import (
    MANAGED,
    await_change,
    await_newer_pods,
    await_operator,
    await_rollout,
    await_strimzi,
    made_after_file,
    restart_pod_set,
    taken_back,
)
from eosctl.upgrade.drivers.kubernetes.workloads import (
    CONFLUENT,
    STATEFUL_SET,
    Workload,
    as_stored,
    deletes_by_hand,
    generation,
    list_pods,
    names_of,
    not_ready_condition,
    observed,
    parse_workload,
    replicas,
    rolled,
    rolled_out,
)
from eosctl.upgrade.drivers.manifests.fields import Manifest, Patch, judge_rolling, several_at_once, worker_container
from eosctl.upgrade.drivers.manifests.pods import Member, Origin, Pod, judge_workload, match_pods, origin_of_field
from eosctl.upgrade.gate import Gate

_Now = tuple[Workload, Manifest]
"""A workload, and what Kubernetes says of it."""


def kubernetes_driver(
    app: App,
    workloads: Sequence[str],
    kubectl: Kubectl,
    *,
    variable: str | None = None,
    container: str | None = None,
    file: MountedProperties | None = None,
    watches: bool = False,
) -> KubernetesDriver:
    """Return the driver for these workloads as they are now; `container` runs the worker, if it has to be named.

    Raises UsageError for another kind or container, NotFoundError, RefusedError if not all pods would be restarted,
    nothing shows which container is the worker, or the change would affect no worker, and what kubectl raises.
    """
    driver = replace(named_workloads(app, workloads, kubectl), watches=watches)
    there = [(each, driver.look(app, each)) for each in driver.workloads]
    name = variable or DEFAULT_VARIABLE
    there = [(_with_container(each, now, container, name, must=file is None), now) for each, now in there]
    places = {
        each.text: choose_place(app, kubectl, each, now, variable=variable, file=file, watches=watches)
        for each, now in there
    }
    if file is not None and not watches:
        require_changeable(app, kubectl, file)
    controlled = [(each.text, *rolled(app, kubectl, each, now)) for each, now in there]
    return replace(
        driver,
        workloads=tuple(each for each, _now in there),
        places=places,
        deleted_by_us=frozenset(text for text, _made, now in controlled if deletes_by_hand(now)),
        # Strimzi's operator restarts one pod after the other, whatever its resource says
        crowded={
            text: () if made.is_strimzi else several_at_once(now, container=made.container)
            for text, made, now in controlled
        },
        stuck={} if watches else _stuck(app, kubectl, controlled),
    )


def _stuck(app: App, kubectl: Kubectl, controlled: Sequence[tuple[str, Workload, Manifest]]) -> Mapping[str, StuckPod]:
    """Return the pods that a StatefulSet's controller would not replace in their present state."""
    ours = [each for each in controlled if each[1].kind == STATEFUL_SET and not deletes_by_hand(each[2])]
    found = [(text, pod) for text, made, now in ours for pod in list_pods(app, kubectl, made, now) if not pod.ready]
    return {pod.uid: StuckPod(pod.name, text, trouble(app, kubectl, pod)) for text, pod in found}


def _with_container(workload: Workload, now: Manifest, named: str | None, variable: str, *, must: bool) -> Workload:
    """Return the workload with its worker's container; None for an unknown one that may be unknown."""
    if not workload.is_operated:
        with suppress(*([] if must else [RefusedError])):
            return replace(workload, container=worker_container(workload.text, now, named=named, variable=variable))
        return workload
    if named is not None:
        raise UsageError(f"--container is for statefulset/ and deployment/: {workload.text} has the mode in its spec")
    return workload


def named_workloads(app: App, workloads: Sequence[str], kubectl: Kubectl) -> KubernetesDriver:
    """Return a driver that only looks at these workloads; raise UsageError for another kind, and kubectl's errors."""
    given = dict.fromkeys(parse_workload(each) for each in workloads)
    return KubernetesDriver(tuple(as_stored(app, kubectl, each) for each in given), kubectl)


class KubernetesDriver(Struct, frozen=True):
    """`places` has the place of each workload's mode; `deleted_by_us` are workloads whose pods eosctl deletes.

    `crowded` has the reasons why several pods of a workload may be down at once. `watches`: somebody else makes the
    changes and deletes pods; nothing is written to Kubernetes. `stuck` are the pods, by their uids, that are not Ready
    when this is planned: they may be deleted.
    """

    name: ClassVar[str] = "kubernetes"
    at_once: ClassVar[bool] = True
    waits_for_person: ClassVar[bool] = False

    workloads: tuple[Workload, ...]
    kubectl: Kubectl = field(default_factory=Kubectl)
    places: Mapping[str, ModePlace] = {}
    deleted_by_us: frozenset[str] = frozenset()
    crowded: Mapping[str, Sequence[str]] = {}
    watches: bool = False
    stuck: Mapping[str, StuckPod] = {}

    def look(self, app: App, workload: Workload) -> Manifest:
        """Read the workload as it is now; raise RefusedError if an operator owns it or not all pods would restart."""
        now = self.kubectl.get(app, workload.text)
        refuse_owned(workload.text, now)
        reason, words = not_rolling(workload.text, now)
        if reason:
            raise RefusedError(
                f"{workload.text} {reason}; nothing was written", hint=f"Change that first: {self.kubectl.line(*words)}"
            )
        return now

    def files(self, _workers: Sequence[str]) -> Sequence[Path]:
        """Return no files, as none are on this machine."""
        return ()

    def actions(self, _workers: Sequence[str], mode: Mode) -> Sequence[str]:
        """Return the change of each workload, and who restarts the pods."""
        told = []
        for each in self.workloads:
            rest = "its controller restarts all of its workers, one after the other"
            if self.crowded.get(each.text):
                rest = f"its controller restarts its workers, several at once: {'; '.join(self.crowded[each.text])}"
            if each.text in self.deleted_by_us:
                rest = "kubectl delete pod, one after the other (updateStrategy OnDelete), the leader's last"
            change = self._place(each).action(self.kubectl, each, mode)
            whose = "not by eosctl (--no-write): " if self.watches else ""
            told += [f"{whose}{change}", f"{whose}{rest}" if each.text in self.deleted_by_us else rest]
            told += [
                f"{self.kubectl.line('delete', f'pod/{pod.name}')}, if it is not Ready by then"
                for pod in self.stuck.values()
                if pod.workload == each.text
            ]
        return told

    def deletes(self) -> Mapping[str, str]:
        """Return the pods that are not Ready, and why."""
        return {pod.name: pod.trouble for pod in self.stuck.values()}

    def check(self, app: App, workers: Sequence[str]) -> None:
        """Check that the workloads have at least as many pods as the group has members."""
        pods = self.expected(app)
        if len(workers) > pods:
            verb = "has" if len(self.workloads) == 1 else "have"
            raise RefusedError(
                f"{names_of(self.workloads)} {verb} {counted(pods, 'pod')}, and the group "
                f"{counted(len(workers), 'member')}: not all of {', '.join(workers)} are its pods, and the others "
                "would keep their mode; nothing was written",
                hint="Name all workloads of the group (repeat --workload; all in one namespace). Stop workers that are "
                "in none, or change all of them with another driver (print, command).",
            )

    def expected(self, app: App) -> int:
        """Return the replicas that the workloads want now."""
        return _wanted(self._now(app))

    def absent(self, app: App, members: Sequence[WorkerObservation]) -> Sequence[str]:
        """Name the pods without a member, and those still to be made."""
        there = self._now(app)
        missing = _wanted(there) - len(members)
        left = match_pods(self._pods(app, there), _members(members)).pods if missing > 0 else ()
        names = [f"pod {each.name}" for each in left][: max(0, missing)]
        made = range(len(names) + 1, missing + 1)
        return [*names, *(f"pod to come {number} of {names_of(self.workloads)}" for number in made)]

    def mode(self, app: App) -> Mode | None:
        """Return the mode that all templates have, if every pod is made from them."""
        there = [(each, now, rolled(app, self.kubectl, each, now)[1]) for each, now in self._now(app)]
        said = {
            self._made_as(app, each, now) if observed(made) and not not_ready_condition(made) else None
            for each, now, made in there
        }
        rolling = [made for each, _now, made in there if not each.is_strimzi and not rolled_out(made)]
        value = said.pop() if len(said) == 1 and not rolling else None
        return Mode(value) if value in {mode.value for mode in TARGETS} else None

    def _made_as(self, app: App, workload: Workload, now: Manifest) -> str | None:
        """Return the mode of the pods; if somebody else changes a file, judge by times, as no annotation shows it."""
        place = self._place(workload)
        if self.watches and isinstance(place, MountedProperties):
            return made_after_file(app, self.kubectl, workload, place, now)
        return place.made_as(app, self.kubectl, workload, now)

    def place(self, app: App) -> str:
        """Name the workloads, a file's key (its ConfigMap may be renamed), the namespace, context and server."""
        namespace = f"namespace {self.kubectl.namespace}" if self.kubectl.namespace else "the context's namespace"
        files = dict.fromkeys(each.key for each in self.places.values() if isinstance(each, MountedProperties))
        what = ", ".join([names_of(self.workloads), *(f"{key} of the ConfigMap that is mounted" for key in files)])
        return f"{what} in {namespace} of {self.kubectl.where(app)}"

    def match(
        self, app: App, members: Sequence[WorkerObservation], *, accepted: Collection[str], complete: bool
    ) -> Gate:
        """Judge the gate workload_matches."""
        return judge_workload(
            [each.text for each in self.workloads],
            self._pods(app, self._now(app)),
            _members(members),
            accepted=codes.WORKLOAD_MATCHES in accepted,
            complete=complete,
        )

    def gates(
        self, app: App, members: Sequence[WorkerObservation], *, accepted: Collection[str], complete: bool
    ) -> Sequence[Gate]:
        """Judge the gates of DRIVER_GATE_IDS."""
        return (
            self.match(app, members, accepted=accepted, complete=complete),
            judge_rolling(self.crowded, accepted=codes.WORKLOAD_ROLLS in accepted),
            self._rights(app, accepted=codes.KUBECTL_RIGHTS in accepted),
        )

    def bring(self, app: App, _workers: Sequence[str], mode: Mode) -> DriverResult:
        """Change workload after workload and wait for each rollout; restart what needs no change as it is."""
        bring = self._watch if self.watches else self._bring
        told, backups = zip(*(bring(app, each, mode) for each in self.workloads), strict=True)
        return DriverResult("; ".join(told), ", ".join(dict.fromkeys(filter(None, backups))) or None)

    def _watch(self, app: App, workload: Workload, mode: Mode) -> tuple[str, None]:
        self.look(app, workload)
        place = self._place(workload)
        await_change(app, self.kubectl, workload, place, mode)
        if isinstance(place, MountedProperties):
            await_newer_pods(app, self.kubectl, workload, place)
        self._await_pods(app, workload, mode)
        return f"{workload.text} changed by somebody else", None

    def _bring(self, app: App, workload: Workload, mode: Mode) -> tuple[str, str | None]:
        before = self.look(app, workload)
        made, was = rolled(app, self.kubectl, workload, before)
        backup = self._place(workload).change(app, self.kubectl, workload, mode)
        after = self.kubectl.get(app, workload.text)
        same = generation(after) == generation(before)
        if workload.is_strimzi and same:
            restart_pod_set(app, self.kubectl, workload.pod_set)
        elif workload.kind == CONFLUENT and not same:
            await_operator(app, self.kubectl, workload, made, generation(was))
        now = self.kubectl.get(app, made.text) if workload.kind == CONFLUENT else after
        if not workload.is_strimzi and same and rolled_out(now):
            self.kubectl.run(app, "rollout", "restart", made.text)
        if deletes_by_hand(now):

            def require_kept(look: App) -> None:
                self._require_kept(look, workload, self.kubectl.get(look, workload.text), mode)

            replace_pods(app, self.kubectl, made, mode, members=self.expected, require_kept=require_kept)
            return f"{workload.text} changed, its pods deleted one by one", backup
        self._await_pods(app, workload, mode)
        return f"{workload.text} changed", backup

    def _await_pods(self, app: App, workload: Workload, mode: Mode) -> None:
        def require_kept(look: App, now: Manifest) -> None:
            now = now if workload.kind != CONFLUENT else self.kubectl.get(look, workload.text)
            self._require_kept(look, workload, now, mode)

        if workload.is_strimzi:
            await_strimzi(app, self.kubectl, workload, require_kept)
            return
        made, _now = rolled(app, self.kubectl, workload, {})
        agreed = None if self.watches else self.stuck
        await_rollout(app, self.kubectl, made, mode, require_kept, agreed=agreed)

    def _require_kept(self, app: App, workload: Workload, now: Manifest, mode: Mode) -> None:
        """Raise TakenBackError if somebody has reverted what was set."""
        place = self._place(workload)
        if place.find(app, self.kubectl, workload, now).value != mode.value:
            words = taken_back(app, self.kubectl, workload, place, [mode])
            if words is not None:
                raise TakenBackError(words)

    def taken_back(self, app: App, allowed: Collection[Mode]) -> str | None:
        """Describe what no longer has one of these modes, and who changed it; None if everything has."""
        found = (taken_back(app, self.kubectl, each, self._place(each), allowed) for each in self.workloads)
        return "; ".join(filter(None, found)) or None

    def origins(self, app: App) -> Sequence[Origin]:
        """Return who deploys each changed object, and which field must be changed there."""
        found = []
        for each in self.workloads:
            now = self.kubectl.get(app, each.text, MANAGED)
            there = self._place(each).find(app, self.kubectl, each, now, MANAGED)
            found.append(origin_of_field(there.thing, there.manifest, there.path, words=there.words))
        return list(dict.fromkeys(found))

    def patches(self, app: App, mode: Mode) -> Sequence[Patch]:
        """Return the patches that bring the workloads to a mode, for `kubectl patch`."""
        found = [patch for each in self.workloads for patch in self._place(each).patches(app, self.kubectl, each, mode)]
        return [patch for number, patch in enumerate(found) if patch not in found[:number]]

    def command(self, patch: Patch) -> str:
        """Return kubectl's command line for the patch."""
        return self.kubectl.line(*patch.words())

    def _place(self, workload: Workload) -> ModePlace:
        default = place_in_spec(workload) if workload.is_operated else Variable(DEFAULT_VARIABLE)
        return self.places.get(workload.text, default)

    def _rights(self, app: App, *, accepted: bool) -> Gate:
        """Judge the gate kubectl_rights: rights that reading does not prove."""
        if self.watches:
            return Gate(codes.KUBECTL_RIGHTS, "pass", "nothing is written to Kubernetes (--no-write)")
        files = [each.thing for each in self.places.values() if isinstance(each, MountedProperties)]
        made = [f"{STATEFUL_SET}/{each.name}" for each in self.workloads if each.kind == CONFLUENT]
        made += [each.pod_set for each in self.workloads if each.is_strimzi]
        wanted = [("patch", what) for what in dict.fromkeys([*(each.text for each in self.workloads), *made, *files])]
        wanted += [("delete", "pods")] if self.deleted_by_us or self.stuck else []
        lacking = [f"{verb} {what}" for verb, what in wanted if not self.kubectl.may(app, verb, what)]
        if lacking:
            return Gate(
                codes.KUBECTL_RIGHTS,
                "fail",
                f"kubectl auth can-i says no: {', '.join(lacking)}",
                codes.KUBECTL_RIGHTS.next,
                accepted=accepted,
            )
        return Gate(codes.KUBECTL_RIGHTS, "pass", "kubectl auth can-i says yes to every change")

    def _now(self, app: App) -> list[_Now]:
        """Read the workloads as they are now."""
        return [(each, self.kubectl.get(app, each.text)) for each in self.workloads]

    def _pods(self, app: App, there: Sequence[_Now]) -> list[Pod]:
        return [pod for each, now in there for pod in list_pods(app, self.kubectl, each, now)]


def _wanted(there: Sequence[_Now]) -> int:
    return sum(replicas(now) for _workload, now in there)


def _members(workers: Sequence[WorkerObservation]) -> list[Member]:
    return [Member(each.url, each.client_host) for each in workers if each.member_id is not None]
