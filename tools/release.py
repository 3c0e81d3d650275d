"""Make the files of a release from a commit, and check them: `python3 -m tools.release [--out DIR]`.

A wheel, a source archive, one file for machines without a network (.pyz), an SBOM beside each, and SHA256SUMS. All of
it is made from what is committed, with the tools of requirements/release.txt in an environment of their own, and is the
same to the byte wherever it is made by the same Python on the same kind of machine: times are the commit's, and no file
names the folder that it was made in. Standard library only.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import io
import json
import os
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
_ABOUT_PYTHON = "import sys, sysconfig; print(*sys.version_info[:2], sysconfig.get_platform(), sep='\\n')"
_PREAMBLE = """\
import sys, sysconfig

found = "%d.%d" % sys.version_info[:2], sysconfig.get_platform()
if found != {made_for!r}:
    print("eosctl: this file is for Python {made_for[0]} on {made_for[1]}, and this is Python %s on %s." % found, file=sys.stderr)
    print("eosctl: Run it with python{made_for[0]}, or take the file that is made for this one.", file=sys.stderr)
    sys.exit(78)
"""  # noqa: E501 - the program's lines, not ours


def main(argv: Sequence[str]) -> int:
    """Make everything that `argv` asks for and print each file with its size."""
    parser = argparse.ArgumentParser(prog="python3 -m tools.release", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist", metavar="DIR", help="where to (default: dist)")
    parser.add_argument("--commit", metavar="REV", help="what to release (default: HEAD, and nothing may be changed)")
    parser.add_argument(
        "--python", metavar="PATH", action="append",
        help="make a .pyz for this Python (repeatable; default: the one that runs this)",
    )  # fmt: skip
    asked = parser.parse_args(argv)
    if asked.commit is None and _git("status", "--porcelain").strip():
        parser.error("the tree has changes that are not committed; commit them, or name what to release: --commit HEAD")
    for made in release(asked.out, asked.commit or "HEAD", asked.python or [sys.executable]):
        print(f"{made.stat().st_size:>12,}  {made}")
    return 0


def release(out: Path, commit: str, pythons: Iterable[str]) -> list[Path]:
    """Make the files of `commit` in `out`, which must have none yet; return them. Raises CalledProcessError."""
    out.mkdir(parents=True, exist_ok=True)
    if any(out.iterdir()):
        raise SystemExit(f"{out} is not empty: files of another release there would look like this one's")
    tools = tool_environment()
    with tempfile.TemporaryDirectory(prefix="eosctl-release-") as name:
        source, work = Path(name, "eosctl"), Path(name)
        wheel, archive = make_packages(tools, commit, source, out)
        for number, python in enumerate(pythons):
            contents = _Contents(tools, python, source, wheel, work / f"contents-{number}")
            pyz = contents.make_pyz(out, time_of(commit))
            contents.make_sbom(pyz, time_of(commit), hashes=contents.hashes)
            if number == 0:  # what the wheel needs is the same for each Python
                contents.make_sbom(wheel, time_of(commit))
                contents.make_sbom(archive, time_of(commit))
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
        words = ("install", "--quiet", "--require-hashes", "--no-deps", "--only-binary", ":all:")
        _run(python, "pip", *words, "--requirement", str(ROOT / "requirements" / "release.txt"))
        stamp.write_text(digest)
    return python


class _Contents:
    """What a .pyz holds: the wheel and the packages of requirements/eosctl.txt, installed for one Python."""

    def __init__(self, tools: Path, python: str, source: Path, wheel: Path, folder: Path) -> None:
        self._tools, self._source, self._folder = tools, source, folder
        subprocess.run([python, "-m", "venv", "--without-pip", str(folder)], check=True, umask=0o022)
        self._python = folder / "bin" / "python"
        about = subprocess.run([self._python, "-c", _ABOUT_PYTHON], stdout=subprocess.PIPE, text=True, check=True)
        major, minor, self._platform = about.stdout.split()
        self._version = f"{major}.{minor}"
        self._packages = folder / "lib" / f"python{self._version}" / "site-packages"
        report = folder / "report.json"
        listed = str(source / "requirements" / "eosctl.txt")
        self._install("--require-hashes", "--only-binary", ":all:", "--requirement", listed, "--report", str(report))
        self._install("--no-deps", "--no-index", "--find-links", str(wheel.parent), "eosctl")  # by name: no direct_url
        self.hashes = {each["metadata"]["name"]: _hash_of(each) for each in json.loads(report.read_text())["install"]}
        """The sha256 of each package's wheel."""
        for record in self._packages.glob("*.dist-info/RECORD"):
            _without_scripts(record)

    def _install(self, *words: str) -> None:
        command = ("--python", str(self._python), "install", "--quiet", "--no-compile", "--no-deps")
        _run(self._tools, "pip", *command, *words)

    def make_pyz(self, out: Path, made_at: int) -> Path:
        """Make the one file."""
        release_name = next(self._packages.glob("eosctl-*.dist-info")).name.removesuffix(".dist-info")
        made = out / f"{release_name}-py{self._version.replace('.', '')}-{self._platform}.pyz"
        preamble = self._folder / "preamble.py"
        preamble.write_text(_PREAMBLE.format(made_for=(self._version, self._platform)))
        preamble.chmod(0o755)
        _run(
            self._tools, "shiv.cli", "--site-packages", str(self._packages), "--console-script", "eosctl",
            "--python", _SHEBANG, "--preamble", str(preamble), "--compressed", "--reproducible",
            "--output-file", str(made), made_at=made_at,
        )  # fmt: skip
        return made

    def make_sbom(self, artefact: Path, made_at: int, *, hashes: Mapping[str, str] | None = None) -> None:
        """Make the SBOM of a file beside it: what it needs, or, with the `hashes` of packages, what it holds."""
        project, made = str(self._source / "pyproject.toml"), artefact.with_name(f"{artefact.name}.cdx.json")
        words = ("environment", "--pyproject", project, "--output-reproducible", "--output-file", str(made))
        _run(self._tools, "cyclonedx_py", *words, str(self._python), made_at=made_at)
        document: dict[str, Any] = json.loads(made.read_text())
        document["metadata"]["component"]["hashes"] = [_sha256(_digest(artefact))]
        for each in document["components"]:
            if digest := (hashes or {}).get(each["name"]):
                each["hashes"] = [_sha256(digest)]
        made.write_text(json.dumps(document, indent=2) + "\n")
        subprocess.run([self._tools, "-c", _VALIDATE, made], check=True)


_VALIDATE = """\
import pathlib, sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
sys.exit(JsonStrictValidator(SchemaVersion.V1_6).validate_str(pathlib.Path(sys.argv[1]).read_text()))
"""


def _hash_of(installed: Mapping[str, Any]) -> str:
    return str(installed["download_info"]["archive_info"]["hashes"]["sha256"])


def _sha256(digest: str) -> dict[str, str]:
    return {"alg": "SHA-256", "content": digest}


def _without_scripts(record: Path) -> None:
    """Take out of a RECORD what lies outside of site-packages: scripts, whose first line names this folder."""
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
