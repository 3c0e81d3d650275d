"""One program that is etcd, API server, controller manager, scheduler and kubectl: built once, kept in the cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

VERSION = "1.34.4"
_SOURCES = Path(__file__).parent / "program"
_FILES = ("go.mod", "go.sum", "main.go")
_NUMBERS = "k8s.io/component-base/version"


def kept_program() -> Path:
    """Where the program of these sources is kept, once it is built."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    digest = hashlib.sha256(b"".join((_SOURCES / name).read_bytes() for name in _FILES)).hexdigest()[:12]
    return cache / "eosctl" / "kubernetes" / f"kube-{VERSION}-{digest}"


def build_program() -> Path:
    """Builds it with Go, if it is not there; raises CalledProcessError, and FileNotFoundError without Go.

    kubectl and API server refuse each other's versions where nobody wrote them in.
    """
    kept = kept_program()
    if kept.exists():
        return kept
    print(f"building Kubernetes {VERSION} with Go (about 12 minutes of CPU, once): {kept}", flush=True)
    kept.parent.mkdir(parents=True, exist_ok=True)
    major, minor, _patch = VERSION.split(".")
    numbers = {"gitVersion": f"v{VERSION}", "gitMajor": major, "gitMinor": minor}
    flags = " ".join(["-s", "-w", *(f"-X {_NUMBERS}.{name}={value}" for name, value in numbers.items())])
    with tempfile.TemporaryDirectory(prefix="eosctl-kube-") as folder:
        for name in _FILES:
            shutil.copy(_SOURCES / name, folder)
        made = kept.with_suffix(f".{os.getpid()}")
        words = ["go", "build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", str(made), "."]
        subprocess.run(words, cwd=folder, env={**os.environ, "CGO_ENABLED": "0"}, check=True)
    os.replace(made, kept)
    return kept
