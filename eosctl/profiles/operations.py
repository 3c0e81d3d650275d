"""The operations of `eosctl profile`: the content of the config file, resolved values, and changes of the file.

Secrets are shown as `***` and never written: the file has references to them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from msgspec.structs import fields

from eosctl.core.clients.hidden_secrets import hide_secrets, without_logins
from eosctl.core.clients.properties import client_from_properties
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.java.lists import split_list
from eosctl.core.java.properties import parse_properties
from eosctl.core.workers.access import ConnectAccess
from eosctl.core.workers.config import parse_worker_config
from eosctl.core.workers.mirror_makers import CLUSTERS
from eosctl.errors import NotFoundError, UsageError
from eosctl.profiles.config_file import ConfigFile, check_profile, parse_config
from eosctl.profiles.edits import edit_yaml
from eosctl.profiles.rows import (
    PROFILE_FILE,
    PROFILE_LIST,
    PROFILE_ORIGINS,
    PROFILE_SHOW,
    ConfigFileData,
    OriginRow,
    ProfileRow,
    ProfilesSummary,
    ProfileSummary,
    ValueRow,
    ValuesSummary,
)
from eosctl.report import Json, Report
from eosctl.state.backups import write_blocks
from eosctl.target import Target

_SECTIONS = ("client", "connect", "expect")
_LISTS = ("connect_url", "connect_map", "worker_config", "ignore")
_NOT_SHOWN = ("bootstrap_servers", "named", "named_hosts", "of_urls", "proxies")
_Shown = tuple[str, Json, str]
"""The name of a value, its printable form, and its origin."""


def list_profiles(file: ConfigFile) -> Report:
    """Report every profile of the file, by name."""
    rows = []
    for name in sorted(file.profiles):
        profile = file.profile(name)
        urls = profile.get("connect_url") or []
        rows.append(
            ProfileRow(
                profile=name,
                current=name == file.current,
                bootstrap_server=profile.get("bootstrap_server"),
                group_id=profile.get("group_id"),
                connect_urls=[urls] if isinstance(urls, str) else list(urls),
                expect=dict(profile.get("expect") or {}),
            )
        )
    return Report(PROFILE_LIST, rows, ProfilesSummary(profiles=len(rows)), data=ConfigFileData(file=file.path))


def show_target(target: Target, *, with_origin: bool) -> Report:
    """Report every resolved value; with `with_origin`, also its origin."""
    rows = [
        OriginRow(name=name, value=value, origin=origin) if with_origin else ValueRow(name=name, value=value)
        for name, value, origin in _values(target)
    ]
    kind, summary = PROFILE_ORIGINS if with_origin else PROFILE_SHOW, ValuesSummary(values=len(rows))
    return Report(kind, rows, summary, target={"kafka_cluster_id": None, "group_id": target.group_id})


def _values(target: Target) -> Iterator[_Shown]:
    origins, profile = target.origins, f"profile {target.profile}"
    if target.profile:
        yield "profile", target.profile, origins["profile"]
    if target.client:
        yield "bootstrap_server", ",".join(target.client.bootstrap_servers), origins["bootstrap_server"]
        yield from _fields("client", target.client, origins.get("command_config", "default"))
    if target.connect_urls:
        yield "connect_url", list(target.connect_urls), origins["connect_url"]
    if target.connect_map:
        yield "connect_map", [str(each) for each in target.connect_map], origins["connect_map"]
    for name, value, origin in _fields("connect", target.connect, ""):
        yield name, value, origins.get(name, origin)
    for scheme, proxy in target.connect.proxies.by_scheme.items():
        yield f"proxy.{scheme}", proxy.shown, f"env {proxy.variable}"
    for name in ("group_id", "config_topic", "offset_topic", "status_topic", "audit_log"):
        if getattr(target, name) is not None:
            yield name, getattr(target, name), origins[name]
    if target.worker_configs:
        files = [each.properties.source for each in target.worker_configs]
        yield "worker_config", files, origins["worker_config"]
    for name, value in sorted(target.expect.items()):
        yield f"expect.{name}", value, profile
    if target.ignore:
        yield "ignore", list(target.ignore), profile


def _fields(section: str, settings: ClientSettings | ConnectAccess, origin: str) -> Iterator[_Shown]:
    """Yield the settings that differ from their defaults, except origins and proxies, which other rows show."""
    for each in fields(settings):
        value = getattr(settings, each.name)
        is_default = not value or value == each.default
        if not is_default and each.name not in _NOT_SHOWN:
            yield f"{section}.{each.name}", _shown(value), origin


def _shown(value: object) -> Json:
    if isinstance(value, Mapping):
        return cast("Json", hide_secrets(value))
    return value if isinstance(value, bool | int) else without_logins(str(value))


def set_values(file: ConfigFile, profile: str, assignments: Sequence[str]) -> Report:
    """Change or create one profile: `KEY=VALUE`, or `KEY=` to remove; raise UsageError and InputFileError."""
    if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*", profile) is None:
        raise UsageError(f"{profile!r} can't name a profile", hint="Use letters, digits, dots, dashes and underscores.")
    text = file.text
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not key or not equals:
            raise UsageError("a change must read KEY=VALUE", hint="KEY= removes a key. See eosctl profile set --help.")
        section, _dot, rest = key.partition(".")
        path = [section, rest] if section in _SECTIONS and rest else [key]
        _check(path, value, profile)
        text = edit_yaml(text, ["profiles", profile, *path], _value(key, value), source=file.path)
    return _write(file, text, profile)


def _check(path: Sequence[str], value: str, profile: str) -> None:
    """Check one change by itself, before any of it is in a file or a message."""
    one: dict[str, object] = {path[0]: value} if len(path) == 1 else {path[0]: {path[1]: value}}
    if len(path) == 1 and path[0] in _SECTIONS:
        raise UsageError(f"{path[0]} is a section", hint=f"Change its members: {path[0]}.NAME=VALUE.")
    check_profile(one, f"profile {profile}")


def _value(key: str, value: str) -> object:
    if not value:
        return None
    return list(split_list(value)) if key in _LISTS else value


def use_profile(file: ConfigFile, profile: str) -> Report:
    """Make a profile the default; raise NotFoundError."""
    if profile not in file.profiles:
        known = ", ".join(sorted(file.profiles)) or "none"
        raise NotFoundError(f"{file.path} has no profile {profile}", hint=f"Its profiles: {known}.")
    return _write(file, edit_yaml(file.text, ["current"], profile, source=file.path), profile)


def import_settings(
    file: ConfigFile, profile: str, source: str, text: str, *, group_id: str | None = None, servers: Sequence[str] = ()
) -> Report:
    """Create a profile from a worker's or a client's properties file, named `source`; passwords stay in that file.

    `group_id` and `servers` select the flow in a dedicated MirrorMaker's file. Raises InputFileError and UsageError.
    """
    properties = parse_properties(text, source=source)
    path = str(Path(source).expanduser().absolute())
    if {"config.storage.topic", "offset.storage.topic", CLUSTERS} & properties.values.keys():
        worker = parse_worker_config(text, source=source, group_id=group_id, servers=servers)
        found = {
            "bootstrap_server": ",".join(worker.bootstrap_servers),
            "group_id": worker.group_id,
            "config_topic": worker.config_topic,
            "offset_topic": worker.offset_topic,
            "status_topic": worker.status_topic,
            "connect_url": worker.rest_url,
            "worker_config": path,
        }
    else:
        client = client_from_properties(properties)
        found = {"bootstrap_server": ",".join(client.settings.bootstrap_servers), "command_config": path}
    return set_values(file, profile, [f"{name}={value}" for name, value in found.items() if value])


def _write(file: ConfigFile, text: str, profile: str) -> Report:
    changed = parse_config(text, file.path)
    values = changed.profile(profile) if profile in changed.profiles else {}
    path = Path(file.path).expanduser().absolute()
    if text != file.text:
        whole = text if text.endswith("\n") else f"{text}\n"
        write_blocks(path, [whole.encode()], like=path.stat() if path.exists() else None)
    rows = [
        ValueRow(name=f"{name}.{member}" if member else name, value=value)
        for name, section in values.items()
        for member, value in (section.items() if isinstance(section, dict) else [("", section)])
    ]
    summary = ProfileSummary(profile=profile, current=changed.current == profile, changed=text != file.text)
    return Report(PROFILE_FILE, rows, summary, data=ConfigFileData(file=str(path)))
