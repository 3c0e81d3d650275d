"""The operations of `eosctl profile`: show the config file and resolved values, change the file, and check a profile.

Secrets are shown as `***` and never written: the file has references to them.

The file is edited as text, so that its comments and its spelling stay. Lines are spliced at the positions that the YAML
parser reports, and the outcome is parsed again: if it is not exactly the wanted one (anchors, unusual layouts), nothing
is changed.

`eosctl profile check` connects to what a profile names, and compares the answers to expectations.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, cast

from msgspec.structs import fields, replace

from eosctl.app import App
from eosctl.core.clients.hidden_secrets import hide_secrets
from eosctl.core.clients.logins import without_logins
from eosctl.core.clients.properties import client_from_properties
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.clients.stores import java_refusals
from eosctl.core.java.properties import parse_properties, split_list
from eosctl.core.kept.plan_file import yaml_of
from eosctl.core.wording import counted
from eosctl.core.workers.access import ConnectAccess
from eosctl.core.workers.config import parse_worker_config
from eosctl.core.workers.modes import CLUSTERS
from eosctl.errors import EosctlError, ExitCode, InputFileError, NotFoundError, UsageError
from eosctl.profiles import codes
from eosctl.profiles.rows import (
    PROFILE_CHECK,
    PROFILE_FILE,
    PROFILE_LIST,
    PROFILE_ORIGINS,
    PROFILE_SHOW,
    Check,
    CheckRow,
    CheckStatus,
    ConfigFileData,
    OriginRow,
    ProfileCheckSummary,
    ProfileRow,
    ProfilesSummary,
    ProfileSummary,
    ValueRow,
    ValuesSummary,
)
from eosctl.profiles.sources import ConfigFile, check_profile, parse_config
from eosctl.report import Json, Problem, Report
from eosctl.state.backups import write_blocks
from eosctl.target import Target

_PLAIN = re.compile(r"[A-Za-z0-9_/.$~-][A-Za-z0-9_/.:$@=+-]*")


def edit_yaml(text: str, path: Sequence[str], value: object, *, source: str) -> str:
    """Set `value` at `path` in `text`; None removes it. Raise InputFileError if that can't be done."""
    import yaml

    wanted = _changed(yaml_of(text, source=source) or {}, path, value)
    try:
        edited = _splice(text, path, value)
        is_right = (yaml_of(edited, source=source) or {}) == wanted
    except (yaml.YAMLError, InputFileError, _CannotSpliceError):
        is_right = False
    if not is_right:
        raise InputFileError(
            f"{source}: {'.'.join(path)} can't be changed without rewriting the whole file",
            hint="Change it in an editor: the layout around it is unusual (anchors, or several values on a line).",
        )
    return edited


class _CannotSpliceError(Exception):
    """There is no line for the value."""


def _changed(document: Any, path: Sequence[str], value: object) -> Any:
    changed = deepcopy(document)
    parents = [changed]
    for key in path[:-1]:
        if not isinstance(parents[-1].get(key), dict):
            parents[-1][key] = {}
        parents.append(parents[-1][key])
    if value is not None:
        parents[-1][path[-1]] = value
        return changed
    parents[-1].pop(path[-1], None)
    for parent, key in zip(reversed(parents[:-1]), reversed(path[:-1]), strict=True):
        if parent[key] == {}:
            parent[key] = None  # what a key without lines below it reads as
            break
    return changed


def _splice(text: str, path: Sequence[str], value: object) -> str:
    import yaml

    root: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    if root is None or _is_null(root):
        return _with_end(text) + _block(path, value, 0)
    key, node, missing = _deepest(root, path)
    if missing:
        if value is None:
            return text
        return _insert(text, _line_below(key, node), _block(missing, value, _column(key, node)))
    if value is not None and _is_on_one_line(node):
        return text[: node.start_mark.index] + _flow(value) + text[node.end_mark.index :]
    lines = _with_end(text).splitlines(keepends=True)
    first, last = key.start_mark.line, max(_last_line(node), key.start_mark.line)
    added = [] if value is None else [_block(path[-1:], value, key.start_mark.column)]
    return "".join(lines[:first] + added + lines[last + 1 :])


def _deepest(root: Any, path: Sequence[str]) -> tuple[Any, Any, Sequence[str]]:
    """Return the last existing key of `path`, its value, and the missing keys below it; the root has no key."""
    import yaml

    key, node = None, root
    for depth, name in enumerate(path):
        if _is_null(node):
            return key, node, path[depth:]
        if not isinstance(node, yaml.MappingNode) or node.flow_style:
            raise _CannotSpliceError
        found = next(((k, v) for k, v in node.value if k.value == name), None)
        if found is None:
            return key, node, path[depth:]
        key, node = found
    return key, node, ()


def _line_below(key: Any, node: Any) -> int:
    """Return the line of a new key: after the last key of a mapping, or right below a key without a value."""
    return int(key.start_mark.line if _is_null(node) else _last_line(node)) + 1


def _column(key: Any, node: Any) -> int:
    return int(key.start_mark.column + 2 if _is_null(node) else node.start_mark.column)


def _is_null(node: Any) -> bool:
    return bool(node.tag == "tag:yaml.org,2002:null" and node.start_mark.index == node.end_mark.index)


def _is_on_one_line(node: Any) -> bool:
    """Decide whether the value can be replaced in place, instead of as whole lines."""
    return node.style not in ("|", ">") if node.id == "scalar" else bool(node.flow_style)


def _last_line(node: Any) -> int:
    """Return the last line of a node's own text; the parser's end of a block is after what follows it."""
    if node.id == "scalar" or node.flow_style:
        return int(node.end_mark.line) - (getattr(node, "style", None) in ("|", ">"))
    last = node.value[-1]
    return max(_last_line(last[1]), last[0].start_mark.line) if node.id == "mapping" else _last_line(last)


def _insert(text: str, line: int, block: str) -> str:
    lines = _with_end(text).splitlines(keepends=True)
    return "".join([*lines[:line], block, *lines[line:]])


def _with_end(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"


def _block(path: Sequence[str], value: object, column: int) -> str:
    """Format nested keys as `a:` / `  b: value`, one a line."""
    lines = [f"{' ' * (column + 2 * depth)}{_flow(key)}:" for depth, key in enumerate(path)]
    return "\n".join(lines) + f" {_flow(value)}\n"


def _flow(value: object) -> str:
    """Format a value on one line; omit quotes if YAML reads the same text without them."""
    import yaml

    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_flow(key)}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_flow(item) for item in value) + "]"
    text = str(value)
    if _PLAIN.fullmatch(text) and not text.endswith(":") and yaml.safe_load(text) == text:
        return text
    return json.dumps(text, ensure_ascii=False)


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
    given = value or None  # KEY= removes the key
    one: dict[str, object] = {path[0]: given} if len(path) == 1 else {path[0]: {path[1]: given}}
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
    report = set_values(file, profile, [f"{name}={value}" for name, value in found.items() if value])
    return replace(report, problems=[*report.problems, *_refused_by_java(java_refusals(properties))])


def _refused_by_java(settings: Iterable[str]) -> list[Problem]:
    return [Problem(codes.JAVA_REFUSES, f"Java's clients refuse this file: {each}") for each in settings]


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


_Found = Callable[[], tuple[str, str | None]]
"""A check: returns the answer, and what is wrong with it."""


def check_target(app: App) -> Report:
    """Report one row per cluster, group and worker: ok, wrong, or failed with the reason.

    Exit with 3 if an answer differs from the expected one; else, if nothing answers, with the first failure's exit
    code, and with 7 if some do.
    """
    rows: list[CheckRow] = []
    failures: list[EosctlError] = []
    for name, subject, ask in _questions(app):
        try:
            found, wrong = ask()
            status: CheckStatus = "wrong" if wrong else "ok"
            rows.append(CheckRow(check=name, subject=subject, status=status, found=found, reason=wrong))
        except EosctlError as exc:
            failures.append(exc)
            rows.append(CheckRow(check=name, subject=subject, status="failed", found=None, reason=exc.message))
    counts = {status: sum(row.status == status for row in rows) for status in ("ok", "wrong", "failed")}
    if counts["wrong"]:
        code = ExitCode.FINDINGS
    elif failures:
        code = ExitCode.PARTIAL if counts["ok"] else failures[0].exit_code
    else:
        code = ExitCode.OK
    cluster = next((row.found for row in rows if row.check == "kafka"), None)
    target = {"kafka_cluster_id": cluster, "group_id": app.target.group_id}
    problems = [*_refused_by_java(app.target.java_refusals), *(Problem.of(failure) for failure in failures)]
    summary = ProfileCheckSummary(counts=counts)
    return Report(PROFILE_CHECK, rows, summary, target=target, problems=problems, exit_code=code)


def _questions(app: App) -> Iterator[tuple[Check, str, _Found]]:
    target = app.target
    yield "kafka", ",".join(target.require_client().bootstrap_servers), lambda: _kafka(app)
    if target.group_id is not None or "group_id" in target.expect:
        yield "group", str(target.group_id), lambda: _group(app)
    for url in target.connect_urls:
        yield "worker", url, lambda url=url: _worker(app, url)  # type: ignore[misc]  # a default binds it now


def _kafka(app: App) -> tuple[str, str | None]:
    with app.transactions() as admin:
        return _compare(admin.cluster_id(), app.target.expect.get("kafka_cluster_id"))


def _group(app: App) -> tuple[str, str | None]:
    group_id, expected = app.target.group_id, app.target.expect.get("group_id")
    if group_id != expected and expected is not None:
        return str(group_id), f"expected {expected}"
    with app.transactions() as admin:
        group = admin.describe_group(app.target.require_group_id())
    return f"{group.state}, {counted(len(group.members), 'member')}", None


def _worker(app: App, url: str) -> tuple[str, str | None]:
    root = app.worker(url).root()
    _cluster_id, wrong = _compare(root["kafka_cluster_id"], app.target.expect.get("kafka_cluster_id"))
    return f"version {root['version']}, Kafka cluster {root['kafka_cluster_id']}", wrong


def _compare(found: str, expected: str | None) -> tuple[str, str | None]:
    return found, None if expected in (None, found) else f"expected {expected}"
