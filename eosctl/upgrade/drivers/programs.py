"""Runs the programs that drivers need, and sets the mode in a worker's properties file on this machine.

The programs are systemctl, ssh, kubectl and the user's own, run with no shell, and a deadline. Their words have
placeholders for what differs between workers; a value never becomes part of a shell's syntax.

The file is changed whole or not at all, with a backup beside it.
"""

from __future__ import annotations

import ipaddress
import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from eosctl.app import App
from eosctl.core.java.properties import ENCODING, parse_properties, set_property
from eosctl.core.workers.modes import CLUSTERS, Mode
from eosctl.deadline import Clock
from eosctl.errors import DeadlineError, EosctlError, InputFileError, NotFoundError, RefusedError, UsageError
from eosctl.foreign import shell_words
from eosctl.group.members import NodeName, is_node
from eosctl.machine.children import child_environ
from eosctl.machine.files import followed, open_regular, write_whole
from eosctl.upgrade.drivers import SETTING

_TOLD = 3  # lines of a failed program's last words


class ProgramError(EosctlError):
    """A program ended with another status than 0; `said` is all its output about that, `printed` its stdout."""

    def __init__(self, message: str, *, said: str, printed: str = "", hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.said, self.printed = said, printed


def run_program(app: App, words: Sequence[str], *, stdin: bytes = b"") -> bytes:
    """Run a program and return what it wrote to stdout.

    Raises NotFoundError if there is no such program, DeadlineError, ProgramError with its last output if its exit
    status is not 0, and EosctlError if it can't be run.
    """
    shown = shell_words(*words)
    try:
        done = subprocess.run(
            list(words),
            input=stdin,
            capture_output=True,
            timeout=max(1.0, app.deadline.remaining_s()),
            env=child_environ(),
        )
    except FileNotFoundError as exc:
        raise NotFoundError(f"there is no program {words[0]}", hint="Install it, or put it on PATH.") from exc
    except OSError as exc:
        raise EosctlError(f"cannot run {shown}: {exc.strerror or exc}") from exc
    except subprocess.TimeoutExpired as exc:
        hint = "Give it more time: --timeout for what is only looked at, --settle-timeout for a restart."
        raise DeadlineError(f"{shown} did not end in time", hint=hint) from exc
    if done.returncode:
        text = (done.stderr or done.stdout).decode("utf-8", "replace").strip()
        last = " / ".join(text.splitlines()[-_TOLD:]) or "it said nothing"
        message = f"{shown} ended with status {done.returncode}: {last}"
        printed = done.stdout.decode("utf-8", "replace")
        raise ProgramError(message, said=text, printed=printed, hint="Run it by hand to see more.")
    return done.stdout


_PLACEHOLDER = re.compile(r"\{(\w*)\}")
_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?"
_HOST = re.compile(rf"{_LABEL}(?:\.{_LABEL})*\.?", re.ASCII)
_URL = re.compile(r"[A-Za-z0-9._:/\[\]~-]+", re.ASCII)


def worker_values(url: str) -> dict[str, str]:
    """Return `url`, `host` and `port` of a worker; `host` and `number` of a node that has no URL.

    Whoever may join the group says what a member's URL is; a command may give it to a shell, or to ssh as an option.
    Raises RefusedError for a host that is neither a name nor an address.
    """
    if is_node(url):
        node = NodeName.read(url)
        return {"host": _checked_host(node.host, url), "number": str(node.number)}
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2].removesuffix(f":{parts.port}").strip("[]")  # as written: not in lower case
    if not _URL.fullmatch(url):
        raise _unfit(url, url)
    return {"url": url, "host": _checked_host(host, url), "port": str(parts.port or "")}


def _checked_host(host: str, worker: str) -> str:
    if _HOST.fullmatch(host) or _is_ipv6(host):
        return host
    raise _unfit(host, worker)


def _is_ipv6(host: str) -> bool:
    try:
        return ipaddress.IPv6Address(host).scope_id is None  # a zone may be any text
    except ValueError:
        return False


def _unfit(value: str, worker: str) -> RefusedError:
    return RefusedError(
        f"{value!r} of worker {worker} is neither a host name nor an address, so that no command may get it; nothing "
        "was written",
        hint="See who joined the group: eosctl workers list. Workers name themselves by rest.advertised.host.name.",
    )


def fill(template: str, values: Mapping[str, str], *, option: str) -> str:
    """Return `template` with each {name} replaced; raise UsageError for an unknown name."""

    def value(match: re.Match[str]) -> str:
        if match[1] not in values:
            known = ", ".join(f"{{{name}}}" for name in values)
            raise UsageError(f"{option} has {match[0]}, which is none of {known}")
        return values[match[1]]

    return _PLACEHOLDER.sub(value, template)


def fill_command(template: str, values: Mapping[str, str], *, option: str) -> list[str]:
    """Split a command line into words as a shell would, then fill in the values; raise UsageError."""
    try:
        words = shlex.split(template)
    except ValueError as exc:
        raise UsageError(f"{option} can't be split into words: {exc}") from exc
    if not words:
        raise UsageError(f"{option} is empty")
    return [fill(word, values, option=option) for word in words]


class Edited(Struct, frozen=True):
    """An edited file; `backup` is None if the file had the mode already and was left alone."""

    path: Path
    backup: Path | None


def with_mode(content: bytes, mode: Mode, *, source: str, setting: str = SETTING) -> bytes:
    """Return the content of a worker's properties file with the mode set.

    Raises InputFileError if it is malformed or not a worker's: it may have been cut off or emptied.
    """
    text = content.decode(ENCODING)
    names = parse_properties(text, source=source).values
    if not any(name in ("group.id", CLUSTERS) or name.endswith("bootstrap.servers") for name in names):
        raise InputFileError(
            f"{source} is not the properties file of a worker: it has neither group.id nor bootstrap.servers; nothing "
            "was written",
            hint="Check --properties-file. A file that was cut off has a copy beside it, named .bak.",
        )
    return set_property(text, setting, mode.value).encode(ENCODING)


def edit_mode(path: Path, mode: Mode, clock: Clock, *, setting: str = SETTING) -> Edited:
    """Set the mode in the file at `path`, or that a link there leads to; keep its owner and rights.

    Its owner, a service's user say, may have set the link, and may change whatever is in the folder meanwhile: all is
    read from, and given to, files that are open. Raises InputFileError where it can't be read or written, or is
    malformed.
    """
    try:
        path = path.expanduser()
        real = followed(path, owners=[path.stat().st_uid])
        descriptor, status = open_regular(real)
        with open(descriptor, "rb") as file:
            before = file.read()
        after = with_mode(before, mode, source=str(path), setting=setting)
        if after == before:
            return Edited(path, None)
        free = real.with_name(f"{real.name}.{stamp(clock)}.bak")
        backup = write_whole(free, lambda file: file.write(before), name=lambda: free, like=status)
        write_whole(real, lambda file: file.write(after), like=status)
    except OSError as exc:
        hint = getattr(exc, "hint", "Check the path and its rights.")
        raise InputFileError(f"cannot change {path}: {exc.strerror or exc}; the file is as it was", hint=hint) from exc
    return Edited(path, backup)


def stamp(clock: Clock) -> str:
    """Return the current time for a file name."""
    return datetime.fromtimestamp(clock.now_ms() / 1000, tz=UTC).strftime("%Y%m%dT%H%M%S%fZ")
