"""From a bare python3 to a ready `.venv` in the checkout: makes the README's two commands enough.

Standard library only: it runs before anything is installed. It writes to stderr, ends with one line of cause and one of
remedy when it can't go on (exit 69 for the network or the disk, 78 for this machine's set-up), and costs a file read
when there is nothing to do.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

CHECKOUT = Path(__file__).resolve().parent.parent
_STAMP = "eosctl-installed.json"
_OLDEST_PYTHON = (3, 11)
_DISK_NEEDED = {"spark": 3_000_000_000}  # bytes: pip builds pyspark's wheel from a 450 MB archive
_UNAVAILABLE, _CONFIG = 69, 78
_BUILD_SETTINGS = "[bdist_wheel]\ncompression = stored\n"  # pyspark's wheel is jars: to deflate them takes 12 s


def run_in_venv(*, extras: Sequence[str], argv: Sequence[str]) -> NoReturn:
    """Replace this process by `.venv/bin/python ARGV…`, after making `.venv` and installing `extras` if needed."""
    python = ensure_venv(extras=extras)
    os.execv(python, [str(python), *argv])  # noqa: S606 - our own interpreter, with the user's own arguments


def ensure_venv(*, extras: Sequence[str]) -> Path:
    """Return the interpreter of a `.venv` that holds eosctl (editable) and `extras`.

    Exits with a hint if the `.venv` can't be made.
    """
    if sys.version_info < _OLDEST_PYTHON:
        _give_up(
            f"this is Python {sys.version.split()[0]}; eosctl needs {'.'.join(map(str, _OLDEST_PYTHON))} or newer.",
            "Run the same command with a newer one, such as python3.11.",
            code=_CONFIG,
        )
    if not (CHECKOUT / "pyproject.toml").exists():
        _give_up("eosctl is not in a checkout here.", "In a clone of it: pip install '.[spark]'", code=_CONFIG)
    wanted = set(extras) | _java_extra(extras)
    venv = CHECKOUT / ".venv"
    with _locked(CHECKOUT / ".venv.lock"):
        if not _is_installed(venv, wanted):
            _install(venv, wanted | _installed_extras(venv))
    return venv / "bin" / "python"


def inside_venv() -> bool:
    """Return whether this process runs on the checkout's own `.venv`."""
    return Path(sys.prefix).resolve() == (CHECKOUT / ".venv").resolve()


def _java_extra(extras: Sequence[str]) -> set[str]:
    """Return `java` (a JDK as a wheel) if Spark or the sandbox will be used and this machine has no Java 17."""
    from eosctl.machine.java import find_java

    if not {"spark", "dev"} & set(extras) or find_java(os.environ) is not None:
        return set()
    return {"java"}


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _digest() -> str:
    """Return one sha256 of all files that determine what to install."""
    files = [CHECKOUT / "pyproject.toml", *sorted(CHECKOUT.glob("requirements/*.txt"))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def _stamp(venv: Path) -> dict[str, object]:
    try:
        stamp: dict[str, object] = json.loads((venv / _STAMP).read_text())
    except (OSError, ValueError):
        return {}
    return stamp


def _installed_extras(venv: Path) -> set[str]:
    found = _stamp(venv).get("extras")
    return set(found) if isinstance(found, list) else set()


def _is_installed(venv: Path, wanted: set[str]) -> bool:
    stamp = _stamp(venv)
    return stamp.get("digest") == _digest() and wanted <= _installed_extras(venv) and (venv / "bin" / "python").exists()


def _install(venv: Path, extras: set[str]) -> None:
    needed = max((_DISK_NEEDED.get(extra, 0) for extra in extras), default=0)
    free = shutil.disk_usage(CHECKOUT).free
    if free < needed and not _installed_extras(venv):
        _give_up(
            f"{free / 1e9:.1f} GB are free in {CHECKOUT}; installing needs about {needed / 1e9:.1f} GB.",
            "Free some space, or clone to a larger disk.",
            code=_UNAVAILABLE,
        )
    if not (venv / "bin" / "python").exists():
        _make_venv(venv)
    _say(f"installing eosctl[{','.join(sorted(extras))}] into {venv} (once; about a minute)")
    log = venv / "install.log"
    log.unlink(missing_ok=True)
    if any(_run_pip(venv, [*_install_words(), *words], log) for words in _installs(extras)):
        lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
        _give_up(
            "pip could not install eosctl's dependencies:\n  " + "\n  ".join(lines[-4:]),
            f"The whole log is {log}. Behind a mirror, set PIP_INDEX_URL and run the same command again.",
            code=_UNAVAILABLE,
        )
    (venv / _STAMP).write_text(json.dumps({"digest": _digest(), "extras": sorted(extras)}))


def _installs(extras: set[str]) -> list[list[str]]:
    """Return the arguments of pip's calls, in order: only files of a known sha256, then eosctl itself.

    The build tools of a source archive are installed first: in a build environment of its own pip would fetch them
    unchecked.
    """
    known = ["--require-hashes", "--no-build-isolation", "--use-pep517"]
    lists = [word for name in ["eosctl", *sorted(extras)] for word in ("--requirement", f"requirements/{name}.txt")]
    own = f"{CHECKOUT}[{','.join(sorted(extras))}]"
    return [
        [*known, "--requirement", "requirements/build.txt"],
        [*known, *lists],
        ["--no-deps", "--no-build-isolation", "--editable", own],
    ]


def _install_words() -> list[str]:
    """Return the words of pip's install command.

    Python compiles a module when it is first imported, and keeps the result: pip would compile 6,000, of which few are
    used. Where Python may keep nothing, pip compiles all of them.
    """
    return ["install"] if os.environ.get("PYTHONDONTWRITEBYTECODE") else ["install", "--no-compile"]


def _run_pip(venv: Path, words: Sequence[str], log: Path) -> int:
    """Run pip and return its exit code, appending its output to `log`; wheels that it builds are not compressed."""
    settings = venv / "build.cfg"
    settings.write_text(_BUILD_SETTINGS, encoding="ascii")
    environ = {"DIST_EXTRA_CONFIG": str(settings), **_environ()}
    command = [str(venv / "bin" / "python"), "-m", "pip", *words]
    with log.open("ab") as output:
        return subprocess.run(
            command, cwd=CHECKOUT, env=environ, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
        ).returncode


def _environ() -> dict[str, str]:
    """Return the environment of pip and apt-get, which run code of others: without eosctl's passwords."""
    from eosctl.machine.children import child_environ

    return child_environ()


def _make_venv(venv: Path) -> None:
    if not _has_ensurepip():
        _install_ensurepip()
    _say(f"making {venv}")
    made = subprocess.run([sys.executable, "-m", "venv", str(venv)], capture_output=True, text=True, env=_environ())
    if made.returncode:
        shutil.rmtree(venv, ignore_errors=True)
        cause = (made.stdout + made.stderr).strip() or "it ended without a word"
        _give_up(f"{sys.executable} -m venv {venv} failed:\n{cause}", "Cure that, then run this again.", code=_CONFIG)


def _has_ensurepip() -> bool:
    return (
        subprocess.run([sys.executable, "-c", "import ensurepip"], capture_output=True, env=_environ()).returncode == 0
    )


def _install_ensurepip() -> None:
    """Install ensurepip if this process is root; otherwise exit with a hint.

    Debian and Ubuntu ship ensurepip in a separate package.
    """
    package = f"python3.{sys.version_info.minor}-venv"
    apt_get = shutil.which("apt-get")
    if apt_get and os.geteuid() == 0:
        _say(f"this python3 comes without ensurepip; installing {package} (apt-get)")
        environ = {**_environ(), "DEBIAN_FRONTEND": "noninteractive"}
        for words in (["update"], ["install", "-y", "--no-install-recommends", package]):
            subprocess.run([apt_get, "-qq", *words], env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    if not _has_ensurepip():
        _give_up(
            "this python3 comes without ensurepip, so it can't make a virtual environment with pip.",
            f"Debian, Ubuntu: sudo apt-get install {package}; then run the same command again.",
            code=_CONFIG,
        )


def _say(text: str) -> None:
    print(f"eosctl: {text}", file=sys.stderr, flush=True)


def _give_up(cause: str, cure: str, *, code: int) -> NoReturn:
    _say(cause)
    _say(cure)
    raise SystemExit(code)
