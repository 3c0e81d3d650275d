"""The sources of values, in order: flags, `EOSCTL_*` environment and a profile; secrets, fetched; and the YAML file.

The YAML file of profiles has a location, a valid content, and edits that keep its comments.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from msgspec import Struct

from eosctl.core.clients.settings import Secret
from eosctl.core.java.properties import split_list
from eosctl.deadline import Clock, Deadline
from eosctl.errors import InputFileError, RefusedError
from eosctl.foreign import arguments
from eosctl.machine.files import NamedFiles, followed, make_folder
from eosctl.profiles.file_format import Connect, Expectable, ExpectedTarget, Profile
from eosctl.state.audit_file import lock_now

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
        from eosctl.machine.children import output_of

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
    """Convert a mapping to text as .properties files have it (`true`), without members that have no value."""
    return {
        str(key): str(item).lower() if isinstance(item, bool) else str(item)
        for key, item in mapping(value, where).items()
        if item is not None
    }


_EDIT_S, _POLL_S = 60.0, 0.05  # several at once take their turns, on a loaded machine too
CONNECT_SECRETS = ("key_password", "password", "token")
CONNECT_NAMES = tuple(f"connect_{key}" for key in (*Connect.__struct_fields__, *CONNECT_SECRETS))
PROFILE_KEYS = frozenset(Profile.__struct_fields__)


class ConfigFile(Struct, frozen=True):
    """The content of a config file; `current` is the default profile."""

    path: str
    text: str
    profiles: Section
    current: str | None

    def profile(self, name: str) -> Section:
        """Return one profile, checked; raise InputFileError."""
        if name not in self.profiles:
            known = ", ".join(sorted(map(str, self.profiles))) or "none"
            raise InputFileError(f"{self.path} has no profile {name}", hint=f"Its profiles: {known}.")
        profile = mapping(self.profiles[name], f"{self.path}: profile {name}")
        check_profile(profile, f"{self.path}: profile {name}")
        return profile


def config_path(sources: Sources) -> str:
    """Return the path of the config file: --config, $EOSCTL_CONFIG, else below $XDG_CONFIG_HOME."""
    given = sources.first("config")
    return given.value if given else f"{sources.environ.get('XDG_CONFIG_HOME') or '~/.config'}/eosctl/config.yaml"


def parse_config(text: str, path: str) -> ConfigFile:
    """Parse a config file; raise InputFileError if it is not one."""
    from eosctl.core.kept.plan_file import yaml_of  # many runs have no config file

    document = mapping(yaml_of(text, source=path), path)
    current = document.get("current")
    profiles = {str(name): each for name, each in mapping(document.get("profiles"), f"{path}: profiles").items()}
    return ConfigFile(path, text, profiles, None if current is None else str(current))


def open_config(sources: Sources) -> ConfigFile:
    """Read the config file, or return an empty one if there is none; raise InputFileError."""
    path = config_path(sources)
    try:
        return parse_config(sources.read_text(path), path)
    except InputFileError as exc:
        if not _is_missing(exc):
            raise
        return ConfigFile(path, "", {}, None)


@contextmanager
def edited_config(sources: Sources, clock: Clock) -> Iterator[ConfigFile]:
    """Read the config file and lock it until the block ends; raise RefusedError if another eosctl edits it for long."""
    path = Path(config_path(sources)).expanduser()
    try:
        make_folder(path.parent)
        folder = os.open(followed(path).parent, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as exc:
        hint = getattr(exc, "hint", "Check the path and its rights.")
        raise InputFileError(f"cannot write {path}: {exc.strerror or exc}", hint=hint) from exc
    try:
        deadline = Deadline.after(_EDIT_S, clock)
        with suppress(OSError):  # some file systems have no locks
            while not lock_now(folder):
                if deadline.expired():
                    raise RefusedError(
                        f"another process has locked {path.parent}; nothing was written",
                        hint="It may be another `eosctl profile`: wait for it, or end it.",
                    )
                clock.sleep_s(_POLL_S)
        yield open_config(sources)
    finally:
        os.close(folder)


def load_profile(sources: Sources) -> ResolvedValue | None:
    """Put the chosen profile into `sources` and return its name; without -p and --config there may be no file.

    Raises InputFileError, and RefusedError if others can change the file, as it decides who gets which secrets.
    """
    path, name = config_path(sources), sources.first("profile")
    try:
        file = parse_config(sources.read_text(path), path)
    except InputFileError as exc:
        if sources.first("config") is not None or not _is_missing(exc):
            raise
        if name is None:
            return None
        raise InputFileError(
            f"there is no profile {name.value}: {exc.message}",
            hint=f"Make it: eosctl profile set {arguments(name.value)} bootstrap_server=HOST:PORT",
        ) from exc
    chosen = name or (ResolvedValue(file.current, path) if file.current else None)
    if chosen is not None:
        sources.profile, sources.profile_origin = file.profile(chosen.value), f"profile {chosen.value}"
        if sources.fetch_secrets:
            holds = "commands that eosctl runs" if _runs_commands(sources.profile) else "addresses that get credentials"
            sources.files.require_private(path, holds, readable=True)
    return chosen


def _runs_commands(profile: Section) -> bool:
    sections = (profile.get("client"), profile.get("connect"))
    return any(str(key).endswith("_command") for section in sections for key in section or ())


def _is_missing(exc: InputFileError) -> bool:
    """Decide whether the file does not exist, as opposed to one that can't be read or parsed."""
    return isinstance(exc.__cause__, FileNotFoundError | NotADirectoryError)


def check_profile(profile: Section, where: str) -> None:
    """Raise InputFileError for unknown keys, and for secrets in plain text."""
    from eosctl.core.clients.properties import SECRET_NAMES
    from eosctl.core.workers.config import parse_connect_map
    from eosctl.core.workers.url import parse_worker_url

    _known(profile, PROFILE_KEYS, where)
    expect = mapping(profile.get("expect"), f"{where}: expect")
    _known(expect, ExpectedTarget.__struct_fields__, f"{where}: expect")
    if expect.get("mode") not in (None, *get_args(Expectable)):
        raise InputFileError(f"{where}: expect.mode is one of {', '.join(get_args(Expectable))}, not {expect['mode']}")
    connect = mapping(profile.get("connect"), f"{where}: connect")
    _refuse_literal(connect, CONNECT_SECRETS, f"{where}: connect")
    _known(connect, Connect.__struct_fields__, f"{where}: connect")
    _refuse_literal(strings(profile.get("client"), f"{where}: client"), SECRET_NAMES, f"{where}: client")
    parse_connect_map(as_list(profile.get("connect_map") or ()))
    for url in as_list(profile.get("connect_url") or ()):
        if parse_worker_url(url).authorization is not None:
            raise InputFileError(
                f"{where}: connect_url: a password may not stand in a profile as it is",
                hint="Use connect.username with connect.password_env, _file or _command.",
            )


def _known(section: Section, known: Collection[str], where: str) -> None:
    if unknown := sorted(map(str, section.keys() - set(known))):
        raise InputFileError(f"{where}: unknown key {unknown[0]}", hint=f"Known: {', '.join(sorted(known))}.")


def _refuse_literal(section: Section, secrets: Collection[str], where: str) -> None:
    for key in section:
        if key in secrets:
            raise InputFileError(
                f"{where}: {key} may not stand in a profile as it is",
                hint=f"Use {key}_env, {key}_file or {key}_command.",
            )
