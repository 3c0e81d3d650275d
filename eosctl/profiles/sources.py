"""The sources of values, in order: flags, `EOSCTL_*` environment and a profile; and secrets, fetched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from eosctl.core.clients.settings import Secret
from eosctl.core.java.lists import split_list
from eosctl.errors import InputFileError
from eosctl.machine.files import NamedFiles

Section = Mapping[str, Any]
"""A mapping of the config file as parsed: a profile, or a part of one."""

SECRET_SUFFIXES = ("_env", "_file", "_command")


class ResolvedValue(Struct, frozen=True):
    """A value and its origin."""

    value: Any
    origin: str


@dataclass(slots=True)
class Sources:
    """The sources of a Target; `profile` is filled in once it is known.

    Without `fetch_secrets`, secrets are `***`, and nothing is read or run for them: enough to show origins.
    """

    flags: Mapping[str, Any]
    environ: Mapping[str, str]
    files: NamedFiles
    fetch_secrets: bool = True
    profile: Section = field(default_factory=dict)
    profile_origin: str = ""

    def first(self, name: str, *, many: bool = False, within: str | None = None) -> ResolvedValue | None:
        """Return the first value of `name`, with its origin; None if there is none, or an empty one.

        `within` is the section of the profile that has it, where `name` lacks the section's prefix (`connect_ca`:
        `ca`).
        """
        variable = f"EOSCTL_{name.upper()}"
        candidates = (
            ResolvedValue(self.flags.get(name), "flag"),
            ResolvedValue(self.environ.get(variable), f"env {variable}"),
            ResolvedValue(self._of_profile(name, within), self.profile_origin),
        )
        for each in candidates:
            if each.value:
                return (
                    ResolvedValue(as_list(each.value), each.origin)
                    if many
                    else ResolvedValue(str(each.value), each.origin)
                )
        return None

    def _of_profile(self, name: str, within: str | None) -> object:
        if within is None:
            return self.profile.get(name)
        return self.section(within).get(name.removeprefix(f"{within}_"))

    def section(self, name: str) -> dict[str, str]:
        """Return a mapping inside the profile; raise InputFileError if it is something else."""
        return strings(self.profile.get(name), f"{self.profile_origin}: {name}")

    def secret(self, name: str, *, within: str) -> ResolvedValue | None:
        """Return a secret: from flag `NAME_file`, `EOSCTL_NAME` or `EOSCTL_NAME_FILE`, or a key of the profile."""
        variable = f"EOSCTL_{name.upper()}"
        if not self.flags.get(f"{name}_file") and self.environ.get(variable):
            return ResolvedValue(Secret(self.environ[variable]), f"env {variable}")
        for suffix in ("_file", "_env", "_command"):
            given = self.first(f"{name}{suffix}", within=within)
            if given is not None:
                of_profile = given.origin == self.profile_origin
                key = f"{within}: {name.removeprefix(f'{within}_')}" if of_profile else name
                return ResolvedValue(
                    Secret(self.fetch(suffix, given.value, f"{given.origin}: {key}{suffix}")), given.origin
                )
        return None

    def read_text(self, path: str) -> str:
        """Read a file in UTF-8; raise InputFileError."""
        try:
            return self.files.read(path).decode("utf-8")
        except UnicodeDecodeError:
            raise InputFileError(f"{path} is not in UTF-8") from None  # the exception carries what is in the file

    def fetch(self, suffix: str, value: str, where: str) -> str:
        """Fetch a secret from the environment, a private file, or the output of a command; raise InputFileError."""
        if not self.fetch_secrets:
            return "***"
        if suffix == "_env":
            if value not in self.environ:
                raise InputFileError(f"{where}: the environment has no {value}")
            return self.environ[value]
        if suffix == "_file":
            text = self.read_text(value)
            self.files.require_private(value, "a secret")
            return text.rstrip("\r\n")
        from eosctl.machine.secret_commands import output_of

        return output_of(value, where)


def as_list(value: object) -> tuple[str, ...]:
    """Convert a list, or comma-separated text, to a tuple."""
    items = value if isinstance(value, list | tuple) else split_list(str(value))
    return tuple(str(item) for item in items)


def mapping(value: object, where: str) -> Section:
    """Return `value` as a mapping, None as an empty one; raise InputFileError."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InputFileError(f"{where}: a mapping is needed")
    return value


def strings(value: object, where: str) -> dict[str, str]:
    """Convert a mapping of scalars to text; YAML's true becomes `true`, as in .properties files."""
    return {
        str(key): str(item).lower() if isinstance(item, bool) else str(item)
        for key, item in mapping(value, where).items()
    }
