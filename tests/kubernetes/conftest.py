"""Fixtures on the control plane. Where nobody has built it nothing here is collected: a skip would be a failure."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from eosctl.sandbox.stack import Stack
from tests.kubernetes.control_plane import ControlPlane, control_plane
from tests.kubernetes.node import KubeNode
from tests.kubernetes.program_file import kept_program
from tests.kubernetes.workloads import Scene
from tests.sandbox_fixtures import wait_until

collect_ignore_glob = [] if kept_program().exists() else ["test_*.py"]


@pytest.fixture(scope="session")
def plane(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane without nodes."""
    folder = tmp_path_factory.mktemp("kubernetes") / "plane"
    with control_plane(kept_program(), folder, Path(stack.state.cache) / "ports") as started:
        yield started


@pytest.fixture(scope="session")
def node(plane: ControlPlane, stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeNode]:
    """The one node, with addresses that no other run on this machine has."""
    network = f"127.{secrets.choice(range(2, 250))}.{secrets.choice(range(1, 250))}"
    with KubeNode(plane, stack, tmp_path_factory.mktemp("pods"), network) as started:
        yield started
    assert started.failure is None


@pytest.fixture
def idle_scene(plane: ControlPlane, node: KubeNode, stack: Stack, unique: str, tmp_path: Path) -> Iterator[Scene]:
    """A namespace without workloads; its pods are gone at the end."""
    made = Scene(plane, stack, tmp_path, unique, unique)
    made.create_namespace()
    yield made
    made.clear()
    node.held.clear()
    node.broken.clear()
    wait_until(lambda: not node.pods, what="the pods to end")


@pytest.fixture
def here(idle_scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """The same, for what runs kubectl in this process."""
    monkeypatch.setenv("PATH", f"{idle_scene.folder / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("KUBECONFIG", str(idle_scene.plane.kubeconfig))
    return idle_scene
