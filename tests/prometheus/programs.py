"""prometheus and promtool: those of this machine, else out of Debian's package, kept in the cache by its sha256.

apt-get checks what it fetches against the archive's signature. Nobody needs to be root: where this machine has no
package lists, lists of our own are fetched beside the package.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from eosctl.sandbox.downloads.jars import cache_dir, locked

PACKAGE = "prometheus"
_FETCH_S = 300.0


class NotHereError(Exception):
    """They can't be had on this machine; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Programs:
    """Paths of the two programs."""

    prometheus: Path
    promtool: Path


@cache
def programs() -> Programs:
    """The programs; raises NotHereError."""
    found = [shutil.which(name) for name in ("prometheus", "promtool")]
    if found[0] and found[1]:
        return Programs(Path(found[0]), Path(found[1]))
    return kept_programs(cache_dir(os.environ) / "prometheus")


def kept_programs(folder: Path) -> Programs:
    """Those in `folder`, into which they are fetched where it has none; raises NotHereError."""
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / ".lock"):
        kept = next(iter(sorted(folder.glob("*/usr/bin/promtool"))), None) or _fetched(folder)
    return Programs(kept.with_name("prometheus"), kept)


def _fetched(folder: Path) -> Path:
    """promtool out of the package, which is whole in `folder` or not there at all."""
    missing = [name for name in ("apt-get", "dpkg-deb") if shutil.which(name) is None]
    if missing:
        raise NotHereError(f"this machine has neither prometheus and promtool nor {missing[0]}, which fetches them")
    with tempfile.TemporaryDirectory(prefix="new-", dir=folder) as made:
        package = _downloaded(Path(made))
        with package.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        whole = Path(made) / "whole"
        _run(["dpkg-deb", "-x", str(package), str(whole)], Path(made))
        whole.rename(folder / digest)
    return folder / digest / "usr" / "bin" / "promtool"


def _downloaded(folder: Path) -> Path:
    """Debian's package in `folder`, by the machine's package lists or else by new ones."""
    folder.chmod(0o755)  # apt's own user writes here when root asks
    try:
        _run(["apt-get", "-qq", "download", PACKAGE], folder)
    except NotHereError:
        lists, archives = folder / "lists", folder / "cache" / "archives"
        for place in (lists, archives):
            (place / "partial").mkdir(parents=True)
        own = (f"Dir::State::Lists={lists}", f"Dir::Cache={archives.parent}", "APT::Sandbox::User=root")
        options = [word for option in own for word in ("-o", option)]
        _run(["apt-get", "-qq", *options, "update"], folder)
        _run(["apt-get", "-qq", *options, "download", PACKAGE], folder)
    return next(folder.glob(f"{PACKAGE}_*.deb"))


def _run(words: Sequence[str], folder: Path) -> None:
    try:
        done = subprocess.run(
            words, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_FETCH_S
        )
    except subprocess.TimeoutExpired as exc:
        raise NotHereError(f"`{' '.join(words)}` did not end within {_FETCH_S:g} s") from exc
    if done.returncode:
        raise NotHereError(f"`{' '.join(words)}` failed: {done.stderr.strip()[-500:]}")
