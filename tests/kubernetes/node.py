"""In place of a kubelet: a Node, and a real Connect worker for each pod that the scheduler binds to it.

A pod may also be eosctl (programs.py) or an executor of Spark (executors.py). A worker's environment says how it runs,
as with the images that make properties of `CONNECT_…` variables. Each pod has an address of its own on loopback. A pod
that is told of no brokers runs, and does nothing.
"""

from __future__ import annotations

import ssl
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from eosctl.core.java.properties import parse_properties, properties_text
from eosctl.sandbox.servers import process
from eosctl.sandbox.servers.launcher import Launcher
from eosctl.sandbox.servers.process import Node as Process
from eosctl.sandbox.stack import Stack
from tests.kubernetes.control_plane import ApiError, ControlPlane
from tests.kubernetes.executors import is_executor, start_executor
from tests.kubernetes.programs import file_in, is_program, start_program

NAME, ADDRESS, PORT = "node-1", "127.0.0.1", 8083
_POLL_S = 0.3
_PREFIX = "CONNECT_"
_SIZE = {"cpu": "64", "memory": "64Gi", "pods": "110"}
_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass
class _Running:
    """One pod here; `shown` is what the API server was told of it."""

    address: str
    worker: Process | None = None
    program: subprocess.Popen[bytes] | None = None
    broken: bool = False
    shown: str = ""


@dataclass
class KubeNode(threading.Thread):
    """The node's loop, between `with` and its end.

    `held` are names of pods whose containers are not started yet; containers of those that are `broken` end at once.
    """

    plane: ControlPlane
    stack: Stack
    folder: Path
    network: str
    held: set[str] = field(default_factory=set)
    broken: set[str] = field(default_factory=set)
    pods: dict[str, _Running] = field(default_factory=dict)
    failure: BaseException | None = None

    def __post_init__(self) -> None:
        super().__init__(name="kube node", daemon=True)
        self._enough = threading.Event()
        self._count = 0
        self._logs = ThreadingHTTPServer((ADDRESS, 0), _Logs)
        # any certificate will do: an API server that was told no authority of its kubelets believes all of them
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        keys = self.plane.folder / "apiserver"
        context.load_cert_chain(keys / "apiserver.crt", keys / "apiserver.key")
        self._logs.socket = context.wrap_socket(self._logs.socket, server_side=True)
        self._answering = threading.Thread(target=self._logs.serve_forever, args=(0.1,), daemon=True)

    def __hash__(self) -> int:
        return id(self)

    def __enter__(self) -> KubeNode:
        self.plane.create("/api/v1/nodes", {"metadata": {"name": NAME}})
        status = {
            "capacity": _SIZE,
            "allocatable": _SIZE,
            "conditions": [{"type": "Ready", "status": "True"}],
            "addresses": [{"type": "InternalIP", "address": ADDRESS}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self._logs.server_port}},
        }
        self.plane.api("PATCH", f"/api/v1/nodes/{NAME}/status", {"status": status})
        self._answering.start()
        self.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._enough.set()
        self.join()  # a look ends: each of its requests has a limit
        self._logs.shutdown()
        self._logs.server_close()
        self._answering.join()
        process.kill([each.worker.process for each in self.pods.values() if each.worker])
        for each in self.pods.values():
            if each.program:
                each.program.kill()
                each.program.wait()

    def run(self) -> None:
        while not self._enough.wait(_POLL_S):
            try:
                self._look()
            except (ApiError, OSError):  # the next look sees what became of it
                continue
            except BaseException as exc:
                self.failure = exc
                raise

    def _look(self) -> None:
        found = self.plane.api("GET", f"/api/v1/pods?fieldSelector=spec.nodeName%3D{NAME}")["items"]
        for pod in found:
            self._tend(pod)
        there = {pod["metadata"]["uid"] for pod in found}
        for uid in [uid for uid in self.pods if uid not in there]:
            self._end(uid)

    def _tend(self, pod: Mapping[str, Any]) -> None:
        metadata = pod["metadata"]
        uid, path = metadata["uid"], f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        if "deletionTimestamp" in metadata:
            self._end(uid)
            self.plane.api("DELETE", path, {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}})
            return
        if uid not in self.pods:
            if metadata["name"] in self.held:
                return
            self._count += 1
            self.pods[uid] = self._start(pod, f"{self.network}.{self._count}")
        running = self.pods[uid]
        state = "crashed" if running.broken else _state_of(running)
        if state != running.shown:
            self.plane.api("PATCH", f"{path}/status", {"status": _status(pod, running, state)})
            running.shown = state

    def _end(self, uid: str) -> None:
        """SIGTERM, the grace of the sandbox, SIGKILL."""
        running = self.pods.pop(uid, None)
        if running and running.worker:
            process.stop([running.worker.process])
        if running and running.program:
            running.program.terminate()
            running.program.wait(60)

    def _start(self, pod: Mapping[str, Any], address: str) -> _Running:
        if pod["metadata"]["name"] in self.broken:
            return _Running(address, broken=True)
        if is_program(pod) or is_executor(pod):
            home = self._home(pod)
            home.mkdir(parents=True)
            if is_executor(pod):
                return _Running(address, program=start_executor(self.plane, pod, address, home))
            return _Running(address, program=start_program(self.plane, pod, home))
        return _Running(address, self._start_worker(pod, address))

    def _home(self, pod: Mapping[str, Any]) -> Path:
        return self.folder / f"{pod['metadata']['name']}-{self._count}"

    def _start_worker(self, pod: Mapping[str, Any], address: str) -> Process | None:
        properties = {
            each["name"].removeprefix(_PREFIX).lower().replace("_", "."): each.get("value", "")
            for container in pod["spec"]["containers"]
            for each in container.get("env") or ()
            if each["name"].startswith(_PREFIX)
        }
        for path in pod["spec"]["containers"][0].get("args") or ():  # an image that takes a properties file
            properties = dict(parse_properties(file_in(self.plane, pod, path), source=path).values)
        if "bootstrap.servers" not in properties:
            return None
        home = self._home(pod)
        home.mkdir(parents=True)
        config = home / "worker.properties"
        properties |= {"listeners": f"http://{address}:{PORT}", "rest.advertised.host.name": address}
        config.write_text(properties_text(properties), encoding="ascii")
        made = Process(home.name, "worker", f"http://{address}:{PORT}", 0, 0, str(config), str(home / "log.txt"))
        launcher = Launcher(Path(self.stack.state.java), self.stack.directory, Path(self.stack.state.cache))
        return launcher.launch(made)


def _state_of(running: _Running) -> str:
    if running.program is not None:
        ended = running.program.poll()
        return "ready" if ended is None else "failed" if ended else "succeeded"
    if running.worker is None:
        return "ready"
    if not running.worker.process.alive():
        return "crashed"
    try:
        with _direct.open(f"{running.worker.address}/health", timeout=2):
            return "ready"
    except (urllib.error.URLError, OSError):
        return "starting"


def _status(pod: Mapping[str, Any], running: _Running, state: str) -> dict[str, Any]:
    """What a kubelet says; of a crashed pod each container is the one that crashed."""
    ready = "True" if state == "ready" else "False"
    crashed = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off restarting failed container"}}
    states: dict[str, Any] = {"crashed": crashed}
    for ended, code in (("succeeded", 0), ("failed", 1)):
        states[ended] = {"terminated": {"exitCode": code, "reason": "Completed" if code == 0 else "Error"}}
    return {
        "phase": state.title() if state in ("succeeded", "failed") else "Running",
        "hostIP": ADDRESS,
        "podIP": running.address,
        "podIPs": [{"ip": running.address}],
        "conditions": [{"type": each, "status": ready} for each in ("Ready", "ContainersReady")],
        "containerStatuses": [
            {
                "name": container["name"],
                "image": container["image"],
                "imageID": "",
                "ready": ready == "True",
                "restartCount": 0,
                "state": states.get(state, {"running": {"startedAt": "2026-01-01T00:00:00Z"}}),
            }
            for container in pod["spec"]["containers"]
        ],
    }


class _Logs(BaseHTTPRequestHandler):
    """What the API server asks a kubelet for when somebody wants a container's log: the same line for each."""

    def do_GET(self) -> None:
        _empty, what, _namespace, pod, container = urlsplit(self.path).path.split("/")
        assert what == "containerLogs", self.path
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f"{container} of {pod}: no such broker\n".encode())

    def log_request(self, *_args: object) -> None:
        """Nothing on stderr."""
