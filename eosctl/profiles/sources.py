"""Where values come from: flags, `EOSCTL_*` environment and a profile, asked in that order; and secrets, fetched."""

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
"""A mapping of the config file, as YAML has it: a profile, or a part of one."""

SECRET_SUFFIXES = ("_env", "_file", "_command")


class Said(Struct, frozen=True):
    """A value and who said it."""

    value: Any
    origin: str


@dataclass(slots=True)
class Sources:
    """Everything a Target is made from. `profile` is filled in once it is known which one.

    With `fetch_secrets` off, secrets are there as `***` and nothing is read or run for them: enough to show who says
    what.
    """

    flags: Mapping[str, Any]
    environ: Mapping[str, str]
    files: NamedFiles
    fetch_secrets: bool = True
    profile: Section = field(default_factory=dict)
    profile_origin: str = ""

    def first(self, name: str, *, many: bool = False, within: str | None = None) -> Said | None:
        """Who says `name` first; nothing said, and an empty value, is None.

        `within` is the section of the profile that has it as `name` without the section's own (`connect_ca`: `ca`).
        """
        variable = f"EOSCTL_{name.upper()}"
        said = (
            Said(self.flags.get(name), "flag"),
            Said(self.environ.get(variable), f"env {variable}"),
            Said(self._of_profile(name, within), self.profile_origin),
        )
        for each in said:
            if each.value:
                return Said(as_list(each.value), each.origin) if many else Said(str(each.value), each.origin)
        return None

    def _of_profile(self, name: str, within: str | None) -> object:
        if within is None:
            return self.profile.get(name)
        return self.section(within).get(name.removeprefix(f"{within}_"))

    def section(self, name: str) -> dict[str, str]:
        """A mapping inside the profile; raises InputFileError where it is something else."""
        return strings(self.profile.get(name), f"{self.profile_origin}: {name}")

    def secret(self, name: str, *, within: str) -> Said | None:
        """A secret: `NAME_file` by flag, `EOSCTL_NAME` or `EOSCTL_NAME_FILE`, or one of the profile's three ways."""
        variable = f"EOSCTL_{name.upper()}"
        if not self.flags.get(f"{name}_file") and self.environ.get(variable):
            return Said(Secret(self.environ[variable]), f"env {variable}")
        for suffix in ("_file", "_env", "_command"):
            said = self.first(f"{name}{suffix}", within=within)
            if said is not None:
                of_profile = said.origin == self.profile_origin
                key = f"{within}: {name.removeprefix(f'{within}_')}" if of_profile else name
                return Said(Secret(self.fetch(suffix, said.value, f"{said.origin}: {key}{suffix}")), said.origin)
        return None

    def read_text(self, path: str) -> str:
        """A file in UTF-8; raises InputFileError."""
        try:
            return self.files.read(path).decode("utf-8")
        except UnicodeDecodeError:
            raise InputFileError(f"{path} is not in UTF-8") from None  # the exception carries what is in the file

    def fetch(self, suffix: str, value: str, where: str) -> str:
        """A secret from the environment, a file of one's own, or what a command prints; raises InputFileError."""
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
    """A list, or a text of items with commas between them."""
    items = value if isinstance(value, list | tuple) else split_list(str(value))
    return tuple(str(item) for item in items)


def mapping(value: object, where: str) -> Section:
    """`value` as a mapping, nothing as an empty one; raises InputFileError."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InputFileError(f"{where}: a mapping is needed")
    return value


def strings(value: object, where: str) -> dict[str, str]:
    """A mapping of scalars as text; YAML's true becomes `true`, as .properties files spell it."""
    return {
        str(key): str(item).lower() if isinstance(item, bool) else str(item)
        for key, item in mapping(value, where).items()
    }
