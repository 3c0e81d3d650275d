"""A kubectl on PATH that keeps a cluster in a folder: what the driver `kubernetes` asks of it, and no more.

Its controllers are late, as real ones are: the status of a workload is about its newest spec only when it was asked for
twice, and a new pod is Ready when it was looked at twice.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # each kubectl is a process: it imports no more than it must
    from typing import Any

_SCRIPT = """#!{python} -SE
import sys
sys.path.insert(0, {checkout!r})
from tests.fakes.kubectl import Cluster
from pathlib import Path
Cluster(Path({folder!r})).run(sys.argv[1:])
"""
NO_STATUS = "error: rollout status is only available for RollingUpdate strategy type"


class Cluster:
    """`folder` holds an object a file, and `calls`: a line of JSON for each time that kubectl was run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def install(self, directory: Path) -> None:
        """Puts `kubectl` into `directory`."""
        self.folder.mkdir()
        script = directory / "kubectl"
        checkout = str(Path(__file__).parents[2])
        script.write_text(_SCRIPT.format(python=sys.executable, checkout=checkout, folder=str(self.folder)))
        script.chmod(0o755)

    def add(self, what: str, *, pods: int = 0, **manifest: Any) -> None:
        """An object KIND/NAME with spec and metadata as given, and its pods, all of the revision r1."""
        name = what.partition("/")[2]
        metadata = {"name": name, "generation": 1, **manifest.pop("metadata", {})}
        spec = {"replicas": pods, **manifest.pop("spec", {})}
        status = {"observedGeneration": 1, "updatedReplicas": pods, "updateRevision": "r1"}
        self.write(what, {"metadata": metadata, "spec": spec, "status": status, "env": {}})
        for ordinal in range(pods):
            self._start(f"{name}-{ordinal}", "r1", ready_in=0)

    def read(self, what: str) -> dict[str, Any]:
        """An object; empty where there is none."""
        path = self._path(what)
        return dict(json.loads(path.read_text())) if path.exists() else {}

    def write(self, what: str, manifest: dict[str, Any]) -> None:
        """Makes an object, or changes it."""
        self._path(what).write_text(json.dumps(manifest))

    def pods(self) -> dict[str, dict[str, Any]]:
        """Name -> pod."""
        return {path.stem.partition(" ")[2]: json.loads(path.read_text()) for path in self.folder.glob("pod *.json")}

    def calls(self) -> list[list[str]]:
        """What kubectl was run with, without what only looks."""
        told = [json.loads(line) for line in (self.folder / "calls").read_text().splitlines()]
        return [words for words in told if words[0] != "get"]

    def run(self, words: list[str]) -> None:
        """What the program does."""
        if words[:2] == ["--namespace", "ns"]:
            words = words[2:]
        with (self.folder / "calls").open("a") as calls:
            calls.write(json.dumps(words) + "\n")
        match words:
            case ["get", what, "--ignore-not-found", "--output", "json"]:
                self._get(what)
            case ["set", "env", what, setting]:
                self._set(what, "env", dict([setting.split("=", 1)]))
            case ["patch", what, "--type", "merge", "--patch", patch]:
                self._set(what, "spec", {"config": json.loads(patch)["spec"]["config"]})
            case ["annotate", "--overwrite", what, setting]:
                self.write(what, {**self._there(what), "metadata": {"annotations": dict([setting.split("=", 1)])}})
            case ["rollout", "restart", what]:
                self._set(what, "env", {"restartedAt": str(self._there(what)["metadata"]["generation"])})
            case ["rollout", "status", what]:
                self._roll(what)
            case ["delete", what]:
                self._delete(what)
            case _:
                sys.exit(f"error: unknown command {words}")

    def _path(self, what: str) -> Path:
        return self.folder / f"{what.replace('/', ' ')}.json"

    def _there(self, what: str) -> dict[str, Any]:
        return self.read(what) or sys.exit(f'Error from server (NotFound): "{what}" not found')

    def _get(self, what: str) -> None:
        found = self.read(what)
        if not found:
            return
        print(json.dumps(found))
        if what.startswith("pod/") and found["ready_in"]:
            self.write(what, _aged(found))
        elif "status" in found:
            found["status"] |= found.pop("status to come", {})
            self.write(what, found)
        elif what.startswith("strimzipodset/"):  # the operator has restarted the pods
            self.write(what, {**found, "metadata": {}})

    def _set(self, what: str, part: str, values: dict[str, Any]) -> None:
        """Changes the spec, and with it the revision; the status follows later."""
        found = self._there(what)
        if found[part].items() >= values.items():
            return
        found[part] |= values
        found["metadata"]["generation"] += 1
        now = found["metadata"]["generation"]
        found["status to come"] = {"observedGeneration": now, "updateRevision": f"r{now}", "updatedReplicas": 0}
        self.write(what, found)

    def _roll(self, what: str) -> None:
        found = self._there(what)
        if found["spec"].get("updateStrategy", {}).get("type") == "OnDelete":
            sys.exit(NO_STATUS)
        found["status"] |= found.pop("status to come", {}) | {"updatedReplicas": found["spec"]["replicas"]}
        self.write(what, found)

    def _delete(self, what: str) -> None:
        self._there(what)
        name = what.partition("/")[2]
        owner = f"statefulset/{name.rpartition('-')[0]}"
        found = self._there(owner)
        found["status"]["updatedReplicas"] += 1
        self.write(owner, found)
        self._start(name, found["status"]["updateRevision"], ready_in=2)

    def _start(self, name: str, revision: str, *, ready_in: int) -> None:
        starts = self.read(f"pod/{name}").get("starts", 0) + 1
        metadata = {"name": name, "uid": f"{name} {starts}", "labels": {"controller-revision-hash": revision}}
        ready = {"type": "Ready", "status": "False" if ready_in else "True"}
        status = {"podIP": f"10.0.0.{name.rpartition('-')[2]}", "conditions": [ready]}
        self.write(f"pod/{name}", {"metadata": metadata, "status": status, "ready_in": ready_in, "starts": starts})


def _aged(pod: dict[str, Any]) -> dict[str, Any]:
    """The pod a look later."""
    left = pod["ready_in"] - 1
    ready = {"type": "Ready", "status": "False" if left else "True"}
    return {**pod, "ready_in": left, "status": {**pod["status"], "conditions": [ready]}}
