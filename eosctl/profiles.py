"""Flags, environment, profile and worker configs resolved into one Target; of each value is kept who said it.

It opens no connection and never shows a secret. Files are read through the caller's `read_file`; the one thing it runs
is a profile's own `*_command`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eosctl.core.client_properties import (
    SECRET_NAMES,
    ClientProperties,
    client_from_properties,
    parse_client_properties,
    split_list,
)
from eosctl.core.client_settings import ClientSettings
from eosctl.core.java_properties import Properties, parse_properties
from eosctl.core.worker_config import WorkerConfig, parse_worker_config
from eosctl.errors import InputFileError, UsageError

ReadFile = Callable[[str], str]

_DEFAULTS = {
    "config_topic": "connect-configs",
    "offset_topic": "connect-offsets",
    "status_topic": "connect-status",
}
_PROFILE_KEYS = frozenset(
    {
        *("bootstrap_server", "command_config", "connect_url", "group_id", "worker_config", "client", "expect"),
        *("audit_log", *_DEFAULTS),
    }
)
EXPECTABLE = ("kafka_cluster_id", "group_id")
_SECRET_SUFFIXES = ("_env", "_file", "_command")
_SECRET_COMMAND_TIMEOUT_S = 30


@dataclass(frozen=True, slots=True)
class Target:
    """Which Kafka cluster and Connect group a command talks to, as far as it was told.

    `origins` tells for each value who won: `flag`, `env EOSCTL_…`, `profile NAME`, a file, or `default`. `expect` holds
    what the profile wants to find before a write: `kafka_cluster_id`, `group_id`.
    """

    client: ClientSettings | None = None
    connect_urls: tuple[str, ...] = ()
    group_id: str | None = None
    config_topic: str = _DEFAULTS["config_topic"]
    offset_topic: str = _DEFAULTS["offset_topic"]
    status_topic: str = _DEFAULTS["status_topic"]
    worker_configs: tuple[WorkerConfig, ...] = ()
    expect: Mapping[str, str] = field(default_factory=dict)
    audit_log: str | None = None
    origins: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def require_client(self) -> ClientSettings:
        """The Kafka client settings; raises UsageError when no bootstrap server was given."""
        if self.client is None:
            raise UsageError("no Kafka cluster was named", hint="Give -b HOST:PORT, or set EOSCTL_BOOTSTRAP_SERVER.")
        return self.client

    def require_group_id(self) -> str:
        """The Connect group id; raises UsageError when none was given."""
        if self.group_id is None:
            raise UsageError("no Connect group was named", hint="Give -g GROUP_ID, or set EOSCTL_GROUP_ID.")
        return self.group_id


@dataclass(frozen=True, slots=True)
class _Said:
    """A value and who said it."""

    value: Any
    origin: str


class _Sources:
    """Flag, environment and profile, asked in that order."""

    def __init__(self, flags: Mapping[str, Any], environ: Mapping[str, str]) -> None:
        self._flags, self._environ = flags, environ
        self.profile: Mapping[str, Any] = {}
        self.profile_origin = ""

    def first(self, name: str, *, many: bool = False) -> _Said | None:
        """Who says `name` first; nothing said, and an empty value, is None."""
        variable = f"EOSCTL_{name.upper()}"
        said = (
            _Said(self._flags.get(name), "flag"),
            _Said(self._environ.get(variable), f"env {variable}"),
            _Said(self.profile.get(name), self.profile_origin),
        )
        for each in said:
            if each.value:
                return _Said(_as_list(each.value), each.origin) if many else _Said(str(each.value), each.origin)
        return None


def resolve_target(flags: Mapping[str, Any], environ: Mapping[str, str], *, read_file: ReadFile) -> Target:
    """The Target, each value from: flag, `EOSCTL_*` environment, profile, worker config, default.

    `flags` holds only what was given. Raises InputFileError for a file that is missing or malformed, UsageError for
    values that can't be or contradict each other.
    """
    sources = _Sources(flags, environ)
    _load_profile(sources, environ, read_file)
    workers_said = sources.first("worker_config", many=True) or _Said((), "")
    workers = tuple(parse_worker_config(read_file(path), source=path) for path in workers_said.value)
    said = {name: sources.first(name) or _of_workers(name, workers) for name in ("group_id", *_DEFAULTS)}
    said |= {name: said[name] or _Said(value, "default") for name, value in _DEFAULTS.items()}
    said["audit_log"] = sources.first("audit_log")
    values = {name: each.value for name, each in said.items() if each is not None}
    origins = {name: each.origin for name, each in said.items() if each is not None}
    urls = sources.first("connect_url", many=True)
    if urls is not None:
        origins["connect_url"] = urls.origin
    client, client_origins = _client(sources, workers, environ, read_file)
    expect = _strings(sources.profile.get("expect"), f"{sources.profile_origin}: expect")
    if unknown := sorted(expect.keys() - EXPECTABLE):
        raise InputFileError(
            f"{sources.profile_origin}: expect: unknown key {unknown[0]}", hint=f"Known: {', '.join(EXPECTABLE)}."
        )
    return Target(
        client=client.settings if client.settings.bootstrap_servers else None,
        connect_urls=urls.value if urls else (),
        worker_configs=workers,
        expect=expect,
        origins=origins | client_origins,
        warnings=client.warnings,
        **values,
    )


def profile_target(profile: str, flags: Mapping[str, Any], environ: Mapping[str, str], *, read_file: ReadFile) -> Target:
    """The Target of one profile alone, as `TOPIC@PROFILE` names it.

    Of `flags` and `EOSCTL_*` only the config file counts: the others say where this command goes, not that profile.
    Raises what `resolve_target` raises.
    """
    said_here = {f"EOSCTL_{name.upper()}" for name in _PROFILE_KEYS}
    alone = {name: value for name, value in environ.items() if name not in said_here}
    return resolve_target({"config": flags.get("config"), "profile": profile}, alone, read_file=read_file)


def _client(
    sources: _Sources, workers: Sequence[WorkerConfig], environ: Mapping[str, str], read_file: ReadFile
) -> tuple[ClientProperties, dict[str, str]]:
    """Security settings from one place, and the bootstrap servers from the first that names some."""
    origins: dict[str, str] = {}
    file = sources.first("command_config")
    inline = _inline_client(sources, environ, read_file)
    if file is not None and (inline is None or file.origin != sources.profile_origin):
        client = parse_client_properties(read_file(file.value), source=file.value)
        origins["command_config"] = file.origin
    elif inline is not None:
        text = parse_properties(read_file(file.value), source=file.value).values if file is not None else {}
        client = client_from_properties(Properties(inline.source, {**text, **inline.values}))
        origins["command_config"] = sources.profile_origin
    elif workers:
        client = workers[0].client()
        origins["command_config"] = workers[0].properties.source
    else:
        client = ClientProperties(ClientSettings(bootstrap_servers=()))
    return _with_bootstrap(client, sources, workers, origins)


def _with_bootstrap(
    client: ClientProperties, sources: _Sources, workers: Sequence[WorkerConfig], origins: dict[str, str]
) -> tuple[ClientProperties, dict[str, str]]:
    said, own = sources.first("bootstrap_server"), client.settings.bootstrap_servers
    client_origin = origins.get("command_config", "")
    if own and (said is None or (client_origin == "flag" and said.origin != "flag")):
        servers, origin = own, client_origin
    elif said is not None:
        servers, origin = split_list(said.value), said.origin
    else:
        found = _of_workers("bootstrap_servers", workers)
        servers, origin = (found.value, found.origin) if found else ((), "")
    if servers or said is not None:
        origins["bootstrap_server"] = origin
        _check_servers(servers, origin)
    settings = dataclasses.replace(client.settings, bootstrap_servers=servers)
    return dataclasses.replace(client, settings=settings), origins


def _check_servers(servers: Sequence[str], origin: str) -> None:
    if not servers:
        raise UsageError(f"no bootstrap server is named ({origin})", hint="Write HOST:PORT, several with commas.")
    for server in servers:
        match = re.fullmatch(r"(?:[A-Za-z][A-Za-z0-9_]*://)?(\[[0-9A-Fa-f:.%]+\]|[^\s:/\[\]]+):(\d{1,5})", server)
        if match is None or not 0 < int(match[2]) < 65536:
            raise UsageError(
                f"{server!r} is not a bootstrap server ({origin})", hint="Write HOST:PORT, or [IPV6]:PORT."
            )


def _of_workers(name: str, workers: Sequence[WorkerConfig]) -> _Said | None:
    """What the worker configs say of `name`; raises UsageError when two disagree."""
    said = [_Said(value, each.properties.source) for each in workers if (value := getattr(each, name, None))]
    for other in said[1:]:
        if other.value != said[0].value:
            raise UsageError(
                f"the worker configs disagree on {name}: {said[0].value} in {said[0].origin}, "
                f"{other.value} in {other.origin}",
                hint="Name workers of one Connect cluster only.",
            )
    return said[0] if said else None


def _load_profile(sources: _Sources, environ: Mapping[str, str], read_file: ReadFile) -> None:
    """Puts the chosen profile into `sources`; without -p and --config there may be no file at all."""
    path, name = sources.first("config"), sources.first("profile")
    default_path = f"{environ.get('XDG_CONFIG_HOME') or '~/.config'}/eosctl/config.yaml"
    try:
        text = read_file(path.value if path else default_path)
    except InputFileError:
        if path is None and name is None:
            return
        raise
    source = path.value if path else default_path
    document = _mapping(_parse_yaml(text, source), source)
    profiles = _mapping(document.get("profiles"), f"{source}: profiles")
    chosen = name.value if name else document.get("current")
    if chosen is None:
        return
    if chosen not in profiles:
        known = ", ".join(sorted(map(str, profiles))) or "none"
        raise InputFileError(f"{source} has no profile {chosen}", hint=f"Its profiles: {known}.")
    profile = _mapping(profiles[chosen], f"{source}: profile {chosen}")
    if unknown := sorted(map(str, profile.keys() - _PROFILE_KEYS)):
        raise InputFileError(
            f"{source}: profile {chosen}: unknown key {unknown[0]}", hint=f"Known: {', '.join(sorted(_PROFILE_KEYS))}."
        )
    sources.profile, sources.profile_origin = profile, f"profile {chosen}"


def _parse_yaml(text: str, source: str) -> object:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as exc:
        line = exc.problem_mark.line + 1 if exc.problem_mark else 0
        raise InputFileError(f"{source}:{line}: not valid YAML: {exc.problem}") from exc
    except yaml.YAMLError as exc:
        raise InputFileError(f"{source}: not valid YAML: {exc}") from exc


def _inline_client(sources: _Sources, environ: Mapping[str, str], read_file: ReadFile) -> Properties | None:
    """The profile's `client` settings, secrets fetched from where they point to."""
    where = f"{sources.profile_origin}: client"
    settings = _strings(sources.profile.get("client"), where)
    if not settings:
        return None
    values: dict[str, str] = {}
    for key, value in settings.items():
        if key in SECRET_NAMES:
            raise InputFileError(
                f"{where}: {key} may not stand in a profile as it is",
                hint=f"Use {key}_env, {key}_file or {key}_command.",
            )
        suffix = next((suffix for suffix in _SECRET_SUFFIXES if key.endswith(suffix)), None)
        name = key.removesuffix(suffix) if suffix else key
        values[name] = _fetch(suffix, value, f"{where}: {key}", environ, read_file) if suffix else value
    return Properties(where, values)


def _fetch(suffix: str, value: str, where: str, environ: Mapping[str, str], read_file: ReadFile) -> str:
    """A secret from the environment, a file, or a command's first line."""
    if suffix == "_env":
        if value not in environ:
            raise InputFileError(f"{where}: the environment has no {value}")
        return environ[value]
    if suffix == "_file":
        return read_file(value).rstrip("\r\n")
    import subprocess

    try:
        run = subprocess.run(  # noqa: S602 - the user's own config file names the command, as git's helpers
            value, shell=True, capture_output=True, text=True, timeout=_SECRET_COMMAND_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError) as exc:
        raise InputFileError(f"{where}: the command failed", hint=f"Run it by hand: {value}") from exc
    return run.stdout.rstrip("\r\n")


def _as_list(value: object) -> tuple[str, ...]:
    items = value if isinstance(value, list | tuple) else split_list(str(value))
    return tuple(str(item) for item in items)


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InputFileError(f"{where}: a mapping is needed")
    return value


def _strings(value: object, where: str) -> dict[str, str]:
    """A mapping of scalars as text; YAML's true becomes `true`, as .properties files spell it."""
    return {
        str(key): str(item).lower() if isinstance(item, bool) else str(item)
        for key, item in _mapping(value, where).items()
    }
