"""etcd, API server, controllers and scheduler as four processes on 127.0.0.1, and a kubectl that knows them.

One user, who may do everything, and as many others as a test makes; RBAC decides.
"""

from __future__ import annotations

import json
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eosctl.sandbox.servers import process
from eosctl.sandbox.servers.process import take_ports

ADMIN, OBSERVER = "admin", "observer"
_CONTROLLERS = (
    "deployment-controller",
    "job-controller",
    "persistentvolume-binder-controller",
    "replicaset-controller",
    "statefulset-controller",
)
# no kubelet renews leases here, no tokens are mounted, and nodes are ready when they say so
_NO_ADMISSION = "ServiceAccount,TaintNodesByCondition"
_START_S = 120.0


class ApiError(Exception):
    """The API server answered with an error."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text}")
        self.status = status


@dataclass(frozen=True)
class ControlPlane:
    """A running one; `kubeconfig` is the admin's, `observer` that of a user without any right."""

    server: str
    folder: Path
    program: Path

    @property
    def kubeconfig(self) -> Path:
        return self.folder / f"{ADMIN}.kubeconfig"

    @property
    def observer(self) -> Path:
        return self.folder / f"{OBSERVER}.kubeconfig"

    def api(self, method: str, path: str, body: object = None, *, patch: str = "merge-patch") -> Any:
        """One request of the admin's; raises ApiError, and OSError where nobody answers."""
        kind = f"application/{patch}+json" if method == "PATCH" else "application/json"
        headers = {"Authorization": f"Bearer {ADMIN}", "Content-Type": kind}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.server}{path}", data=data, method=method, headers=headers)
        context = ssl.create_default_context(cafile=str(self.folder / "apiserver" / "apiserver.crt"))
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )
        try:
            with opener.open(request, timeout=120) as answer:
                text = answer.read()
        except urllib.error.HTTPError as exc:
            with exc:
                raise ApiError(exc.code, exc.read().decode("utf-8", "replace")) from exc
        return json.loads(text) if text.startswith(b"{") else text

    def create(self, path: str, manifest: Mapping[str, Any]) -> Any:
        """A new object."""
        return self.api("POST", path, manifest)


@contextmanager
def control_plane(program: Path, folder: Path, ports: Path) -> Iterator[ControlPlane]:
    """A control plane until the block ends; `ports` is where free ports are agreed on."""
    folder.mkdir()
    client, peer, secure = take_ports(3, folder=ports, owner=folder)
    plane = ControlPlane(f"https://127.0.0.1:{secure}", folder, program)
    _write_access(plane)
    started: list[process.ProcessId] = []

    def start(name: str, *words: str) -> None:
        started.append(
            process.spawn([str(program), name, *words], log=folder / f"{name}.log", directory=folder, environ={})
        )

    try:
        start("etcd", *_etcd(folder, client, peer))
        start("kube-apiserver", *_api_server(folder, client, secure))
        _await(plane, started)
        common = ("--kubeconfig", str(plane.kubeconfig), "--leader-elect=false", "--secure-port=0")
        start("kube-controller-manager", *common, f"--controllers={','.join(_CONTROLLERS)}")
        start("kube-scheduler", *common)
        yield plane
    finally:
        process.kill(started)


def _write_access(plane: ControlPlane) -> None:
    """Tokens, the key that signs those of service accounts, and a kubectl configuration for each user."""
    folder = plane.folder
    (folder / "tokens.csv").write_text(f'{ADMIN},{ADMIN},1,"system:masters"\n{OBSERVER},{OBSERVER},2\n')
    subprocess.run(["openssl", "genrsa", "-out", str(folder / "accounts.key"), "2048"], check=True, capture_output=True)
    cluster = {"server": plane.server, "certificate-authority": str(folder / "apiserver" / "apiserver.crt")}
    for user in (ADMIN, OBSERVER):
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": user,
            "clusters": [{"name": "tests", "cluster": cluster}],
            "users": [{"name": user, "user": {"token": user}}],
            "contexts": [{"name": user, "context": {"cluster": "tests", "user": user}}],
        }
        (folder / f"{user}.kubeconfig").write_text(json.dumps(config))


def _etcd(folder: Path, client: int, peer: int) -> Sequence[str]:
    urls = [f"http://127.0.0.1:{client}", f"http://127.0.0.1:{peer}"]
    return (
        "--data-dir", str(folder / "etcd"), "--name", "one", "--unsafe-no-fsync", "--log-level", "warn",
        "--listen-client-urls", urls[0], "--advertise-client-urls", urls[0],
        "--listen-peer-urls", urls[1], "--initial-advertise-peer-urls", urls[1],
        "--initial-cluster", f"one={urls[1]}",
    )  # fmt: skip


def _api_server(folder: Path, etcd: int, secure: int) -> Sequence[str]:
    key = str(folder / "accounts.key")
    return (
        "--etcd-servers", f"http://127.0.0.1:{etcd}", "--bind-address", "127.0.0.1", "--secure-port", str(secure),
        "--advertise-address", "127.0.0.1", "--cert-dir", str(folder / "apiserver"),
        "--service-cluster-ip-range", "10.96.0.0/16", "--endpoint-reconciler-type", "none",
        "--authorization-mode", "RBAC", "--token-auth-file", str(folder / "tokens.csv"),
        "--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", key,
        "--service-account-signing-key-file", key, f"--disable-admission-plugins={_NO_ADMISSION}",
    )  # fmt: skip


def _await(plane: ControlPlane, started: Sequence[process.ProcessId]) -> None:
    """Until the API server is ready and has made its own namespaces."""
    until_s = time.monotonic() + _START_S
    while True:
        try:
            plane.api("GET", "/readyz")
            plane.api("GET", "/api/v1/namespaces/default")
        except (OSError, ApiError) as exc:
            logs = list(plane.folder.glob("*.log"))
            if time.monotonic() > until_s or not all(each.alive() for each in started):
                told = "\n".join(f"{path.name}: {path.read_text(errors='replace')[-1500:]}" for path in logs)
                raise RuntimeError(f"the control plane did not start: {exc}\n{told}") from exc
            time.sleep(0.2)
        else:
            return
