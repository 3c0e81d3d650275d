"""The steps of a Containerfile, run in roots of Debian's packages: what an engine does, as far as ours ask for it.

FROM, ARG, RUN, COPY, ENV, USER and ENTRYPOINT; anything else is an error. The base image `debian:bookworm-slim` is what
debootstrap makes of the same packages; nobody's image is fetched.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_SUITE, _ARCHIVE = "bookworm", re.compile(r"^(?:URIs: |deb )(\S+/debian)/?(?: |$)", re.MULTILINE)


@dataclass
class Image:
    """A root, and what a container of it starts with."""

    root: Path
    environ: dict[str, str] = field(default_factory=lambda: {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
    user: str = "0:0"
    entrypoint: list[str] = field(default_factory=list)

    def run(self, words: Sequence[str], user: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a program in the root, with the network of this machine and its own /proc."""
        name, _, group = (user or self.user).partition(":")
        inside = '/usr/bin/mount -t proc proc "$0/proc" && exec /usr/sbin/chroot --userspec="$1" "$0" "${@:2}"'
        command = [
            "/usr/bin/unshare",
            "--mount",
            "--pid",
            "--fork",
            "/usr/bin/bash",
            "-c",
            inside,
            str(self.root),
            f"{name}:{group}",
        ]
        return subprocess.run([*command, *words], env=self.environ, capture_output=True, text=True)


def debian(folder: Path) -> Path:
    """Make a root of Debian; raises CalledProcessError, and FileNotFoundError without apt-get."""
    tools, root = folder / "debootstrap", folder / "base"
    tools.mkdir()
    subprocess.run(["apt-get", "-qq", "download", "debootstrap"], cwd=tools, check=True, capture_output=True)
    (package,) = tools.glob("*.deb")
    subprocess.run(["dpkg-deb", "--extract", str(package), str(tools)], check=True)
    program = tools / "usr" / "sbin" / "debootstrap"
    listed = "\n".join(path.read_text() for path in sorted(Path("/etc/apt").glob("sources.list*/*")))
    archive = _ARCHIVE.search(listed)
    words = ["--variant=minbase", _SUITE, str(root), *([archive[1]] if archive else [])]
    environ = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBOOTSTRAP_DIR": str(tools / "usr" / "share" / "debootstrap")}
    done = subprocess.run(["bash", str(program), *words], env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    return root


def steps(text: str) -> list[tuple[str, str]]:
    """Instruction and words of each step."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    whole = re.sub(r"\\\n", " ", "\n".join(lines)).splitlines()
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in whole if line.strip())]


def build(text: str, context: Path, base: Path, prepare: Callable[[Path], Mapping[str, str]]) -> Image:
    """Run all steps; return the last stage's image.

    `prepare` makes a new root reach this machine's package indexes, and returns what RUN needs in its environment.
    """
    stages: dict[str, Image] = {}
    image, needed = Image(base), dict[str, str]()
    for instruction, rest in steps(text):
        match instruction:
            case "ARG":
                assert rest == "BASE=debian:bookworm-slim"
            case "FROM":
                name = rest.partition(" AS ")[2] or "last"
                assert rest.split()[0] == "${BASE}"
                image = stages[name] = Image(base.with_name(name))
                subprocess.run(["cp", "--archive", "--reflink=auto", str(base), str(image.root)], check=True)
                needed = dict(prepare(image.root))
            case "RUN":
                ready = Image(image.root, {**image.environ, **needed}, image.user)
                done = ready.run(["/bin/sh", "-ec", rest])
                assert done.returncode == 0, f"{rest}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
            case "COPY":
                _copy(rest.split(), context, image, stages)
            case "ENV":
                image.environ |= dict(pair.split("=", 1) for pair in rest.split())
            case "USER":
                image.user = rest
            case "ENTRYPOINT":
                image.entrypoint = json.loads(rest)
            case _:
                raise AssertionError(f"{instruction} is no step that is run here")
    return image


def _copy(words: list[str], context: Path, image: Image, stages: Mapping[str, Image]) -> None:
    source = context
    if words[0].startswith("--from="):
        source = stages[words.pop(0).removeprefix("--from=")].root
    *names, to = words
    place = image.root / to.lstrip("/")
    for name in names:
        found = source / name.lstrip("/")
        if found.is_dir():
            shutil.copytree(found, place, symlinks=True, dirs_exist_ok=True)
        else:
            place.mkdir(parents=True, exist_ok=True)
            shutil.copy2(found, place)
