"""Make the files of a release from a commit, and check them: `python3 -m tools.release [--out DIR]`.

A wheel, a source archive, one file for machines without a network (.pyz), an SBOM beside each, and SHA256SUMS. All of
it is made from what is committed, with the tools of requirements/release.txt in an environment of their own, and is the
same to the byte wherever it is made by the same Python: times are the commit's, and no file names the folder or the
system that it was made on. Standard library only.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import io
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
_TOOLS = ROOT / ".venv-release"
_STAMP = "installed.sha256"
_SHEBANG = "/usr/bin/env python3"
_THIS = "{}.{}".format(*sys.version_info)
_MACHINE = platform.machine()
_GLIBC = 28
"""The wheels of a .pyz need no newer glibc than 2.28, of 2018: that of RHEL 8; pyarrow and numpy ask for as much."""
_PREAMBLE = """\
import os, platform, sys

try:
    libc = os.confstr("CS_GNU_LIBC_VERSION") or ""
except (OSError, ValueError):
    libc = ""
glibc = tuple(map(int, libc.split()[1].split("."))) if libc.startswith("glibc ") else (0, 0)
needed = "CPython %s on Linux, %s, with glibc 2.%d or newer" % {needed!r}
found = platform.python_implementation(), "%d.%d" % sys.version_info[:2], platform.system(), platform.machine()
if found != ("CPython", {needed[0]!r}, "Linux", {needed[1]!r}) or glibc[:2] < (2, {needed[2]}):
    print("eosctl: this file is for", needed + "; this is", *found, libc, file=sys.stderr)
    print("eosctl: Run it with python{needed[0]}, or take the file that is made for this one.", file=sys.stderr)
    sys.exit(78)
"""


def main(argv: Sequence[str]) -> int:
    """Make everything that `argv` asks for and print each file with its size."""
    parser = argparse.ArgumentParser(prog="python3 -m tools.release", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist", metavar="DIR", help="where to (default: dist)")
    parser.add_argument("--commit", metavar="REV", help="what to release (default: HEAD, and nothing may be changed)")
    parser.add_argument(
        "--python", metavar="3.N", action="append", dest="versions",
        help="make a .pyz for this Python, which need not be here (repeatable; default: the one that runs this)",
    )  # fmt: skip
    asked = parser.parse_args(argv)
    if asked.commit is None and _git("status", "--porcelain").strip():
        parser.error("the tree has changes that are not committed; commit them, or name what to release: --commit HEAD")
    for made in release(asked.out, asked.commit or "HEAD", asked.versions or [_THIS]):
        print(f"{made.stat().st_size:>12,}  {made}")
    return 0


def release(out: Path, commit: str, versions: Iterable[str]) -> list[Path]:
    """Make the files of `commit` in `out`, which must have none yet; return them. Raises CalledProcessError."""
    out.mkdir(parents=True, exist_ok=True)
    if any(out.iterdir()):
        raise SystemExit(f"{out} is not empty: files of another release there would look like this one's")
    tools = tool_environment()
    with tempfile.TemporaryDirectory(prefix="eosctl-release-") as name:
        source, work = Path(name, "eosctl"), Path(name)
        wheel, archive = make_packages(tools, commit, source, out)
        for number, version in enumerate(versions):
            contents = _Contents(tools, version, source, wheel, work / f"contents-{number}")
            pyz = contents.make_pyz(out, time_of(commit))
            contents.make_sbom(pyz, time_of(commit), hashes=contents.hashes)
            if number == 0:  # what the wheel needs is the same for each Python
                contents.make_sbom(wheel, time_of(commit))
                contents.make_sbom(archive, time_of(commit))
    subprocess.run([tools, "-c", _VALIDATE, *out.glob("*.cdx.json")], check=True)  # to read the schema takes seconds
    return _with_sums(out)


def make_packages(tools: Path, commit: str, source: Path, out: Path) -> tuple[Path, Path]:
    """Write the commit's files to `source`; make the source archive of them, and the wheel of that archive."""
    _export(commit, source)
    made_at = time_of(commit)
    _run(tools, "build", "--no-isolation", "--outdir", str(out), str(source), made_at=made_at)
    (wheel,), (archive,) = out.glob("*.whl"), out.glob("*.tar.gz")
    _rewrite(archive, made_at)
    _run(tools, "twine", "check", "--strict", str(wheel), str(archive))
    return wheel, archive


def time_of(commit: str) -> int:
    """Return the time of a commit, in seconds since 1970."""
    return int(_git("log", "-1", "--format=%ct", commit))


def _export(commit: str, folder: Path) -> None:
    """Write the files of a commit to `folder`: what is only in the working tree does not get into a release."""
    packed = subprocess.run(["git", "archive", commit], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as files:
        files.extractall(folder, filter="data")


def tool_environment() -> Path:
    """Return the Python of the environment with the tools, which is made where it is not there or of older lists."""
    listed = (ROOT / "requirements" / "release.txt").read_bytes()
    digest, stamp, python = hashlib.sha256(listed).hexdigest(), _TOOLS / _STAMP, _TOOLS / "bin" / "python"
    if not stamp.exists() or stamp.read_text() != digest:
        print(f"making {_TOOLS} with the tools of a release", file=sys.stderr, flush=True)
        venv.create(_TOOLS, clear=True, with_pip=True)
        words = ("install", "--quiet", "--no-compile", "--require-hashes", "--no-deps", "--only-binary", ":all:")
        _run(python, "pip", *words, "--requirement", str(ROOT / "requirements" / "release.txt"))
        stamp.write_text(digest)
    return python


class _Contents:
    """What a .pyz holds: the wheel and the packages of requirements/eosctl.txt, for one Python.

    They are unpacked into an environment of the tools' Python, which runs none of them.
    """

    def __init__(self, tools: Path, version: str, source: Path, wheel: Path, folder: Path) -> None:
        self._tools, self._version, self._source, self._folder = tools, version, source, folder
        subprocess.run([tools, "-m", "venv", "--without-pip", str(folder)], check=True, umask=0o022)
        (self._packages,) = folder.glob("lib/python3*/site-packages")
        report = folder / "report.json"
        listed = str(source / "requirements" / "eosctl.txt")
        self._unpack("--require-hashes", "--requirement", listed, "--report", str(report))
        self._unpack("--no-index", "--find-links", str(wheel.parent), "eosctl")  # by name: no direct_url.json
        self.hashes = {each["metadata"]["name"]: _hash_of(each) for each in json.loads(report.read_text())["install"]}
        """The sha256 of each package's wheel."""
        for beside in ("bin", "share"):
            shutil.rmtree(self._packages / beside)
        for record in self._packages.glob("*.dist-info/RECORD"):
            _without_others(record)

    def _unpack(self, *words: str) -> None:
        """Let pip choose among the wheels as the Python does that this is for, on an old Linux."""
        names = [*(f"manylinux_2_{minor}" for minor in range(_GLIBC, 16, -1)), "manylinux2014"]
        system = [word for name in names for word in ("--platform", f"{name}_{_MACHINE}")]
        command = ("install", "--quiet", "--no-compile", "--no-deps", "--only-binary", ":all:", "--upgrade")
        place = ("--target", str(self._packages), "--implementation", "cp", "--python-version", self._version)
        _run(self._tools, "pip", *command, *place, *system, *words)

    def make_pyz(self, out: Path, made_at: int) -> Path:
        """Make the one file."""
        release_name = next(self._packages.glob("eosctl-*.dist-info")).name.removesuffix(".dist-info")
        made = out / f"{release_name}-py{self._version.replace('.', '')}-linux-{_MACHINE}.pyz"
        preamble = self._folder / "preamble.py"
        preamble.write_text(_PREAMBLE.format(needed=(self._version, _MACHINE, _GLIBC)))
        preamble.chmod(0o755)
        _run(
            self._tools, "shiv.cli", "--site-packages", str(self._packages), "--console-script", "eosctl",
            "--python", _SHEBANG, "--preamble", str(preamble), "--compressed", "--reproducible",
            "--output-file", str(made), made_at=made_at,
        )  # fmt: skip
        return made

    def make_sbom(self, artefact: Path, made_at: int, *, hashes: Mapping[str, str] | None = None) -> None:
        """Make the SBOM of a file beside it: what it needs, or, with the `hashes` of packages, what it holds."""
        project, kept = self._source / "pyproject.toml", self._folder / "sbom.json"
        made = artefact.with_name(f"{artefact.name}.cdx.json")
        if not kept.exists():
            words = ("environment", "--pyproject", str(project), "--output-reproducible", "--output-file", str(kept))
            _run(self._tools, "cyclonedx_py", *words, str(self._folder), made_at=made_at)
        document: dict[str, Any] = json.loads(kept.read_text())
        document["metadata"]["component"]["hashes"] = [_sha256(_digest(artefact))]
        for each in document["components"]:
            if digest := (hashes or {}).get(each["name"]):
                each["hashes"] = [_sha256(digest)]
        made.write_text(json.dumps(document, indent=2) + "\n")


_VALIDATE = """\
import pathlib, sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
validator = JsonStrictValidator(SchemaVersion.V1_6)
for name in sys.argv[1:]:
    if fault := validator.validate_str(pathlib.Path(name).read_text()):
        sys.exit(f"{name}: {fault}")
"""


def _hash_of(installed: Mapping[str, Any]) -> str:
    return str(installed["download_info"]["archive_info"]["hashes"]["sha256"])


def _sha256(digest: str) -> dict[str, str]:
    return {"alg": "SHA-256", "content": digest}


def _without_others(record: Path) -> None:
    """Take out of a RECORD what lies outside of the packages: scripts, whose first line names this folder."""
    rows = list(csv.reader(record.read_text().splitlines()))
    with record.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(row for row in rows if not row[0].startswith(".."))


def _rewrite(archive: Path, made_at: int) -> None:
    """Write a source archive anew without what only tells of this machine: owners, times of files, and of gzip."""
    packed = io.BytesIO()
    with tarfile.open(archive) as old, tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as new:
        for member in sorted(old.getmembers(), key=lambda each: each.name):
            plain = tarfile.TarInfo(member.name)
            plain.type, plain.size, plain.mode, plain.mtime = member.type, member.size, member.mode & 0o755, made_at
            new.addfile(plain, old.extractfile(member) if member.isfile() else None)
    archive.write_bytes(gzip.compress(packed.getvalue(), mtime=made_at))


def _with_sums(out: Path) -> list[Path]:
    """Write SHA256SUMS of all files, as `sha256sum --check` reads it; return them all."""
    made = sorted(out.iterdir())
    sums = out / "SHA256SUMS"
    sums.write_text("".join(f"{_digest(path)}  {path.name}\n" for path in made))
    return [*made, sums]


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout


def _run(python: Path, module: str, *words: str, made_at: int | None = None) -> None:
    """Run a module of the tools, in a folder that is not the checkout; its output is shown where it fails.

    The modes of what it writes and, with `made_at`, the times are the same for everybody.
    """
    done = subprocess.run(
        [python, "-m", module, *words], cwd=python.parent, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        umask=0o022, env=os.environ if made_at is None else {**os.environ, "SOURCE_DATE_EPOCH": str(made_at)},
    )  # fmt: skip
    if done.returncode:
        sys.stderr.buffer.write(done.stdout)
        done.check_returncode()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
