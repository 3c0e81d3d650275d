"""Changes the mode in a worker's properties file on this machine: whole or not at all, with a backup beside it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from eosctl.core.java.properties import parse_properties
from eosctl.core.java.property_edit import ENCODING, set_property
from eosctl.core.workers.mirror_makers import CLUSTERS
from eosctl.core.workers.modes import Mode
from eosctl.deadline import Clock
from eosctl.errors import InputFileError
from eosctl.machine.files import followed, open_regular, write_whole
from eosctl.upgrade.drivers import SETTING


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
