"""A kubectl on PATH that keeps a cluster in a folder: what the driver `kubernetes` asks of it, and no more.

Its controllers are late, as real ones are: each look at a workload or a pod brings them one step on. The status of a
workload is about its newest spec from the second look on, and a new pod is Ready when it was looked at twice.
"""

from __future__ import annotations

import itertools
import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# a shell hands its words to the test's own process: a Python of its own for each kubectl took most of a test's time.
# The answer is in a file: from a socket a shell reads byte by byte, and a `cat` takes nearly as long as the shell
_SCRIPT = """#!/bin/bash
given=
if [ "${{@: -1}}" = /dev/stdin ]; then IFS= read -r -d '' given; fi
exec 3<>/dev/tcp/127.0.0.1/{port}
printf '%s\\0' "$#" "$@" "$given" >&3
read -r status file <&3
IFS= read -r -d '' said <"$file"
case "$status" in
  0) printf %s "$said"; exit 0 ;;
  no) echo 'Warning: the server speaks up' >&2; printf %s "$said"; exit 1 ;;
esac
printf %s "$said" >&2
exit "$status"
"""
_CONFIG_VIEW = {
    "current-context": "dev",
    "clusters": [{"name": "dev", "cluster": {"server": "https://dev.example:6443"}}],
}
_OPTIONS = ("--namespace", "--context", "--kubeconfig")


class KubectlError(Exception):
    """kubectl ends with status 1 and says this."""


class KubectlNoError(Exception):
    """kubectl ends with status 1, and says this where it says what it was asked for; a warning stands beside it."""


class Cluster:
    """`folder` holds an object a file, and `calls`: its words each time that kubectl was run, and the stdin it read.

    A file `says` there is what kubectl says in place of everything: then it fails. `writes_between` are what somebody
    else writes just before the next patches. `now` is when pods are made, as the API server has it. Without `operator`
    nobody restarts the pods of a StrimziPodSet.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.writes_between: list[Callable[[dict[str, Any]], object]] = []
        self.now = ""
        self.operator = True

    @contextmanager
    def install(self, directory: Path) -> Iterator[None]:
        """Puts `kubectl` into `directory`; it works until the block ends."""
        self.folder.mkdir()
        answers = self.folder.with_name(f"{self.folder.name}-answers")
        answers.mkdir()
        with _served(self.run, answers) as port:
            script = directory / "kubectl"
            script.write_text(_SCRIPT.format(port=port))
            script.chmod(0o755)
            yield

    def add(self, what: str, *, pods: int = 0, **manifest: Any) -> None:
        """An object KIND/NAME with spec and metadata as given, and its pods, all of the revision r1."""
        name = what.partition("/")[2]
        metadata = {"name": name, "generation": 1, "resourceVersion": "1", **manifest.pop("metadata", {})}
        worker = {"name": "connect", "env": [], "envFrom": [{"configMapRef": {"name": "worker"}}], "readinessProbe": {}}
        template = {"spec": {"containers": [worker]}}
        selector = {"matchLabels": {"app": name}}
        spec = {"replicas": pods, "selector": selector, "template": template, **manifest.pop("spec", {})}
        status = {
            "observedGeneration": 1,
            "replicas": pods,
            "updatedReplicas": pods,
            "readyReplicas": pods,
            "updateRevision": "r1",
        }
        self.write(what, {"metadata": metadata, "spec": spec, "status": status})
        for ordinal in range(pods):
            self._start(f"{name}-{ordinal}", "r1", ready_in=0)

    def add_configmap(self, name: str, **manifest: Any) -> None:
        """A ConfigMap with data as given."""
        self.write(f"configmap/{name}", {"metadata": {"name": name, "resourceVersion": "1"}, **manifest})

    def own(self, what: str, manager: str, *path: str, operation: str = "Update", time: str = "t") -> None:
        """From now on managedFields say that this manager has written the field: `f:NAME`, `k:{"name":"NAME"}`."""
        found = self.read(what)
        fields: dict[str, Any] = {}
        for step in reversed(path):
            fields = {step: fields}
        entry = {"manager": manager, "operation": operation, "time": time, "fieldsV1": fields}
        found["metadata"].setdefault("managedFields", []).append(entry)
        self.write(what, found)

    def scale(self, what: str, pods: int) -> None:
        """What an autoscaler does: the controller makes the pods, or takes them away, at the next look."""
        found = self.read(what)
        found["spec"]["replicas"] = pods
        found["metadata"]["generation"] += 1
        self.write(what, found)

    def hang(self, pod: str, reason: str) -> None:
        """The pod is not Ready and never gets so."""
        found = self.read(f"pod/{pod}")
        waiting = {"containerStatuses": [{"name": "connect", "state": {"waiting": {"reason": reason}}}]}
        self._show({**found, "ready_in": 1, "stuck": True}, {**found["status"], **waiting})

    def breaks(self, reason: str | None, *lines: str) -> None:
        """Pods that are made from now on never get Ready, and log these lines; None: they do again."""
        path = self.folder / "breaks"
        path.unlink(missing_ok=True)
        if reason:
            path.write_text(reason)
            (self.folder / "logs").write_text("".join(f"{line}\n" for line in lines))

    def refuse(self, says: str) -> None:
        """From now on kubectl fails with these words."""
        (self.folder / "says").write_text(says)

    def answer(self) -> None:
        """It takes back what it refused."""
        (self.folder / "says").unlink()

    def forbid(self, verb: str, says: str = "no") -> None:
        """From now on `kubectl auth can-i` says no to it, or to it and a resource."""
        (self.folder / f"no {verb.replace('/', ' ')}").write_text(says)

    def read(self, what: str) -> dict[str, Any]:
        """An object; empty where there is none."""
        path = self._path(what)
        return dict(json.loads(path.read_text())) if path.exists() else {}

    def write(self, what: str, manifest: dict[str, Any]) -> None:
        """Makes an object, or changes it."""
        self._path(what).write_text(json.dumps(manifest))

    def pods(self) -> dict[str, dict[str, Any]]:
        """Name -> pod."""
        found = {path.stem.partition(" ")[2]: json.loads(path.read_text()) for path in self.folder.glob("pod *.json")}
        return dict(sorted(found.items()))

    def variables(self, what: str, container: str = "connect") -> dict[str, str]:
        """The environment variables of a container of its pods' template."""
        containers = {each["name"]: each for each in self.read(what)["spec"]["template"]["spec"]["containers"]}
        return {each["name"]: each["value"] for each in containers[container].get("env", ())}

    def calls(self) -> list[list[str]]:
        """What kubectl was run with, without what only looks."""
        path = self.folder / "calls"
        told = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [words for words in told if words[0] not in ("get", "config", "auth", "logs")]

    def run(self, words: list[str], given: str = "") -> str:
        """What the program does, and prints; `given` is its stdin, where it reads that. Raises KubectlError."""
        while words[0] in _OPTIONS:
            words = words[2:]
        with (self.folder / "calls").open("a") as calls:
            calls.write(json.dumps([*words, given] if given else words) + "\n")
        if (self.folder / "says").exists():
            raise KubectlError((self.folder / "says").read_text())
        match [*words[:-2], "--patch", given] if words[-2:] == ["--patch-file", "/dev/stdin"] else words:
            case ["config", "view", "--minify", "--output", "json"]:
                return json.dumps(_CONFIG_VIEW)
            case ["auth", "can-i", verb, what]:
                for asked in (verb, f"{verb} {what.replace('/', ' ')}"):
                    if (self.folder / f"no {asked}").exists():
                        raise KubectlNoError((self.folder / f"no {asked}").read_text())
                return "yes"
            case ["get", "pods", "--selector", selector, "--output", "json"]:
                return self._list(selector)
            case ["get", what, "--ignore-not-found", *_options, "--output", "json"]:
                return self._get(self._short(what))
            case ["set", "env", what, "--containers", container, setting]:
                self._set_env(what, container, *setting.split("=", 1))
            case ["patch", what, "--type", "merge" | "strategic", "--patch", patch]:
                self._patch(self._short(what), json.loads(patch))
                if what.startswith("connects."):  # Confluent's operator has a hash of the config in the template
                    self._set(f"statefulset/{what.partition('/')[2]}", {"hash": json.loads(patch)["spec"]})
            case ["patch", what, "--type", "json", "--patch", patch]:
                (change,) = json.loads(patch)
                self._add_at(self._short(what), change["path"], change["value"])
            case ["annotate", "--overwrite", what, setting]:
                self.write(what, {**self._there(what), "metadata": {"annotations": dict([setting.split("=", 1)])}})
            case ["rollout", "restart", what]:
                self._set(what, {"restartedAt": self._there(what)["metadata"]["generation"]})
            case ["logs", _pod, "--container", "connect", "--tail", "5", *previous]:
                if not previous:
                    raise KubectlError("Error from server (BadRequest): container is waiting to start")
                return (self.folder / "logs").read_text()
            case ["delete", what, "--wait=false"]:
                self._delete(what)
            case _:
                raise KubectlError(f"error: unknown command {words}")
        return ""

    def _short(self, what: str) -> str:
        """KIND/NAME without the version of the resource."""
        resource, _, name = what.partition("/")
        kind, _, version = resource.partition(".")
        return f"{kind.removesuffix('s')}/{name}" if version else what

    def _patch(self, what: str, patch: dict[str, Any]) -> None:
        found = self._there(what)
        version = patch.get("metadata", {}).pop("resourceVersion", None)
        if self.writes_between:
            self.writes_between.pop()(found)
            self._written(what, found)
            found = self.read(what)
        if version not in (None, found["metadata"].get("resourceVersion")):
            raise KubectlError(
                f'Error from server (Conflict): Operation cannot be fulfilled on "{what}": the object has been modified'
            )
        merged = merge(found, patch)
        self._written(what, {**merged, "spec": found["spec"]} if "spec" in found else merged)
        if "spec" in patch:
            self._set(what, merged["spec"])

    def _written(self, what: str, found: dict[str, Any]) -> None:
        version = int(found["metadata"].get("resourceVersion", 0)) + 1
        self.write(what, {**found, "metadata": {**found["metadata"], "resourceVersion": str(version)}})

    def _add_at(self, what: str, path: str, value: str) -> None:
        """A JSON patch with one `add`."""
        found = self._there(what)
        *steps, last = path.split("/")[1:]
        place: Any = found
        for step in steps:
            place = place[int(step)] if isinstance(place, list) else place[step]
        place[last] = value
        self.write(what, found)
        self._set(what, {"patched": value})

    def _path(self, what: str) -> Path:
        return self.folder / f"{what.replace('/', ' ')}.json"

    def _there(self, what: str) -> dict[str, Any]:
        found = self.read(what)
        if not found:
            raise KubectlError(f'Error from server (NotFound): "{what}" not found')
        return found

    def _get(self, what: str) -> str:
        found = self.read(what)
        if not found:
            return ""
        shown = json.dumps(found)
        if what.startswith("pod/"):
            self._age(found)
        elif "status" in found:
            found["status"] |= found.pop("status to come", {})
            self.write(what, found)
            self._control(what)
        elif what.startswith("strimzipodset/") and self.operator:  # it has restarted the pods
            self.write(what, {**found, "metadata": {}})
        return shown

    def _list(self, selector: str) -> str:
        name = selector.partition("=")[2].partition(",")[0]
        return json.dumps({"items": self._pods_of(name)})

    def _pods_of(self, name: str) -> list[dict[str, Any]]:
        return [pod for each, pod in self.pods().items() if each.rpartition("-")[0] == name]

    def _set_env(self, what: str, container: str, name: str, value: str) -> None:
        template = self._there(what)["spec"]["template"]
        for each in template["spec"]["containers"]:
            if each["name"] == container:
                others = [one for one in each.get("env", ()) if one["name"] != name]
                each["env"] = [*others, {"name": name, "value": value}]
        self._set(what, {"template": template})

    def _set(self, what: str, values: dict[str, Any]) -> None:
        """Changes the spec, and with it the revision; the status follows later."""
        found = self._there(what)
        if found["spec"].items() >= values.items():
            return
        found["spec"] |= values
        found["metadata"]["generation"] += 1
        now = found["metadata"]["generation"]
        found["status to come"] = {"observedGeneration": now, "updateRevision": f"r{now}", "updatedReplicas": 0}
        self.write(what, found)

    def _control(self, what: str) -> None:
        """One step of the controller: pods that are too few or too many, else the next one of an old revision."""
        found = self.read(what)
        name, revision = found["metadata"]["name"], found["status"].get("updateRevision", "r1")
        there, wanted = self._pods_of(name), found["spec"]["replicas"]
        for pod in there:
            self._age(pod)
        old = [pod for pod in there if pod["metadata"]["labels"]["controller-revision-hash"] != revision]
        by_hand = found["spec"].get("updateStrategy", {}).get("type") == "OnDelete"
        if len(there) < wanted:
            self._start(f"{name}-{len(there)}", revision, ready_in=2)
        elif len(there) > wanted:
            self._path(f"pod/{there[-1]['metadata']['name']}").unlink()
        elif old and not by_hand and not any(pod["ready_in"] for pod in there):
            self._start(old[-1]["metadata"]["name"], revision, ready_in=2)
        there = self._pods_of(name)
        updated = sum(pod["metadata"]["labels"]["controller-revision-hash"] == revision for pod in there)
        ready = sum(not pod["ready_in"] for pod in there)
        found["status"] |= {"replicas": len(there), "updatedReplicas": updated, "readyReplicas": ready}
        if "status to come" not in found:
            found["status"]["observedGeneration"] = found["metadata"]["generation"]
        self.write(what, found)

    def _delete(self, what: str) -> None:
        self._there(what)
        name = what.partition("/")[2]
        owner = self._there(f"statefulset/{name.rpartition('-')[0]}")
        self._start(name, owner["status"]["updateRevision"], ready_in=2)

    def _start(self, name: str, revision: str, *, ready_in: int) -> None:
        before = self.read(f"pod/{name}")
        starts = before.get("starts", 0) + 1
        address = before["status"]["podIP"] if before else f"10.0.0.{len(self.pods())}"
        labels = {"app": name.rpartition("-")[0], "controller-revision-hash": revision}
        metadata: dict[str, Any] = {"name": name, "namespace": "ns", "uid": f"{name} {starts}", "labels": labels}
        if self.now:
            metadata["creationTimestamp"] = self.now
        pod = {"metadata": metadata, "ready_in": ready_in, "starts": starts}
        self._show(pod, {"podIP": address})
        if ready_in and (self.folder / "breaks").exists():
            self.hang(name, (self.folder / "breaks").read_text())

    def _age(self, pod: dict[str, Any]) -> None:
        """The pod a look later; one that never gets Ready stays as it is."""
        if pod["ready_in"] and not pod.get("stuck"):
            self._show({**pod, "ready_in": pod["ready_in"] - 1}, pod["status"])

    def _show(self, pod: dict[str, Any], status: dict[str, Any]) -> None:
        ready = {"type": "Ready", "status": "False" if pod["ready_in"] else "True"}
        self.write(f"pod/{pod['metadata']['name']}", {**pod, "status": {**status, "conditions": [ready]}})


def merge(there: Any, patch: Any) -> Any:
    """The object after a merge patch; elements of lists are merged by their names, as a strategic one does."""
    if isinstance(there, dict) and isinstance(patch, dict):
        kept = {name: value for name, value in there.items() if name not in patch}
        return {**kept, **{name: merge(there.get(name), value) for name, value in patch.items() if value is not None}}
    if isinstance(patch, list) and all(isinstance(each, dict) and "name" in each for each in patch):
        old = {each["name"]: each for each in there or ()}
        return list({**old, **{each["name"]: merge(old.get(each["name"]), each) for each in patch}}.values())
    return merge({}, patch) if isinstance(patch, dict) else patch


@contextmanager
def _served(run: Callable[[list[str], str], str], answers: Path) -> Iterator[int]:
    """The port where the script's words are read and answered, one at a time: what is said is a file in `answers`."""
    numbers = itertools.count()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            count = int(self._word())
            words = [self._word() for _number in range(count)]
            try:
                status, said = "0", run(words, self._word())
            except KubectlNoError as exc:
                status, said = "no", f"{exc}\n"
            except KubectlError as exc:
                status, said = "1", f"{exc}\n"
            file = answers / str(next(numbers))
            file.write_text(said, encoding="utf-8")
            self.wfile.write(f"{status} {file}\n".encode())

        def _word(self) -> str:
            return b"".join(iter(lambda: self.rfile.read(1), b"\0")).decode()

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield int(server.server_address[1])
        finally:
            server.shutdown()
            thread.join()
