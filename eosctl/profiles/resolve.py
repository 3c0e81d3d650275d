"""The resolver: of each value is kept who said it. The one thing it runs is a profile's own `*_command`."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eosctl.core.bootstrap_servers import checked_servers
from eosctl.core.client_properties import (
    ClientProperties,
    client_from_properties,
    secrets_in,
)
from eosctl.core.client_sasl import TOKEN_COMMAND
from eosctl.core.client_settings import ClientSettings
from eosctl.core.connect_access import ConnectAccess
from eosctl.core.connect_map import ConnectMapping, parse_connect_map, reachable_url
from eosctl.core.java_properties import Properties, parse_properties, split_list
from eosctl.core.proxies import proxies_of
from eosctl.core.worker_config import WorkerConfig, parse_worker_config
from eosctl.core.worker_url import WorkerUrl, parse_worker_url
from eosctl.errors import UsageError
from eosctl.profiles.config_file import CONNECT_NAMES, PROFILE_KEYS, load_profile
from eosctl.profiles.sources import SECRET_SUFFIXES, ReadFile, RequirePrivate, Said, Sources, as_list
from eosctl.profiles.target import DEFAULT_TOPICS, Target

_TOPIC_PROPERTIES = {"config_topic": "config.storage.topic", "offset_topic": "offset.storage.topic"}


def resolve_target(
    flags: Mapping[str, Any],
    environ: Mapping[str, str],
    *,
    read_file: ReadFile,
    require_private: RequirePrivate,
    fetch_secrets: bool = True,
) -> Target:
    """The Target, each value from: flag, `EOSCTL_*` environment, profile, worker config, default.

    `flags` holds only what was given. Raises InputFileError for a file that is missing or malformed, UsageError for
    values that can't be or contradict each other, and what `require_private` raises.
    """
    sources = Sources(flags, environ, read_file, require_private, fetch_secrets)
    profile = load_profile(sources)
    workers_said = sources.first("worker_config", many=True) or Said((), "")
    workers = tuple(_worker(sources, path) for path in workers_said.value)
    said = {name: sources.first(name) or _of_workers(name, workers) for name in ("group_id", *DEFAULT_TOPICS)}
    disagreements = tuple(_disagreements(sources, workers))
    said |= {name: said[name] or Said(value, "default") for name, value in DEFAULT_TOPICS.items()}
    said |= {"audit_log": sources.first("audit_log"), "profile": profile}
    values = {name: each.value for name, each in said.items() if each is not None}
    origins = {name: each.origin for name, each in said.items() if each is not None}
    client, client_origins = _client(sources, workers)
    connect_map, map_origins = _connect_map(sources)
    urls, access, access_origins = _connect(sources, workers, connect_map)
    return Target(
        client=client.settings if client.settings.bootstrap_servers else None,
        connect_urls=tuple(url.text for url in urls),
        connect=access,
        connect_map=connect_map,
        worker_configs=workers,
        expect=sources.section("expect"),
        ignore=as_list(sources.profile.get("ignore") or ()),
        origins={"worker_config": workers_said.origin, **origins, **client_origins, **access_origins, **map_origins},
        warnings=(*client.warnings, *(text for each in workers for text in _idle(each)), *disagreements),
        disagreements=disagreements,
        notes=(*client.notes, *(note for each in workers for note in _unresolved(each))),
        **values,
    )


def profile_target(
    profile: str,
    flags: Mapping[str, Any],
    environ: Mapping[str, str],
    *,
    read_file: ReadFile,
    require_private: RequirePrivate,
) -> Target:
    """The Target of one profile alone, as `TOPIC@PROFILE` names it.

    Of `flags` and `EOSCTL_*` only the config file counts: the others say where this command goes, not that profile.
    Raises what `resolve_target` raises.
    """
    said_here = {f"EOSCTL_{name.upper()}" for name in (*PROFILE_KEYS, *CONNECT_NAMES)}
    alone = {name: value for name, value in environ.items() if name not in said_here}
    return resolve_target(
        {"config": flags.get("config"), "profile": profile}, alone, read_file=read_file, require_private=require_private
    )


def _worker(sources: Sources, path: str) -> WorkerConfig:
    text = _java_text(sources, path)
    group, servers = sources.first("group_id"), sources.first("bootstrap_server")
    worker = parse_worker_config(
        text,
        source=path,
        group_id=group.value if group else None,
        servers=split_list(servers.value) if servers else (),
    )
    _require_private(sources, path, parse_properties(text, source=path))
    return worker


def _client_file(sources: Sources, path: str) -> Properties:
    properties = parse_properties(_java_text(sources, path), source=path)
    _require_private(sources, path, properties)
    return properties


def _idle(worker: WorkerConfig) -> Iterator[str]:
    for name, right in worker.idle:
        yield f"{worker.properties.source} sets {name}, which sets no worker's mode: it is {right}"


def _unresolved(worker: WorkerConfig) -> Iterator[str]:
    if worker.unresolved:
        names = ", ".join(worker.unresolved)
        yield (
            f"{worker.properties.source}: only the worker can resolve {names}; give what is needed of it: -b, -g, "
            "--config-topic, --offset-topic, and --connect-map or -u for where it is reached"
        )


def _java_text(sources: Sources, path: str) -> str:
    """As `java.util.Properties.load(InputStream)` reads a file, and so every tool of Kafka's."""
    return sources.read_file(path).decode("iso-8859-1")


def _require_private(sources: Sources, path: str, properties: Properties) -> None:
    """A file that holds passwords must be its owner's alone; one with a command must not be anyone else's to change."""
    if secrets := secrets_in(properties):
        sources.require_private(path, secrets[0])
    elif TOKEN_COMMAND in properties.values and sources.fetch_secrets:
        sources.require_private(path, "a command that eosctl runs", readable=True)


def _client(sources: Sources, workers: Sequence[WorkerConfig]) -> tuple[ClientProperties, dict[str, str]]:
    """Security settings from one place, and the bootstrap servers from the first that names some."""
    origins: dict[str, str] = {}
    file = sources.first("command_config")
    inline = _inline_client(sources)
    if file is not None and (inline is None or file.origin != sources.profile_origin):
        client = client_from_properties(_client_file(sources, file.value))
        origins["command_config"] = file.origin
    elif inline is not None:
        text = _client_file(sources, file.value).values if file is not None else {}
        client = client_from_properties(Properties(inline.source, {**text, **inline.values}))
        origins["command_config"] = sources.profile_origin
    elif workers:
        client = workers[0].client()
        origins["command_config"] = workers[0].properties.source
    else:
        client = ClientProperties(ClientSettings(bootstrap_servers=()))
    if sources.fetch_secrets and client.stores:
        from eosctl.profiles.java_stores import with_stores

        client = dataclasses.replace(client, settings=with_stores(client, sources.read_file))
    for path in (client.settings.ssl_key_location, client.settings.oauth_token_file):
        if path is not None and sources.fetch_secrets:
            sources.require_private(path, "a secret")
    return _with_bootstrap(client, sources, workers, origins)


def _with_bootstrap(
    client: ClientProperties, sources: Sources, workers: Sequence[WorkerConfig], origins: dict[str, str]
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
        servers = checked_servers(servers, origin)
    settings = dataclasses.replace(client.settings, bootstrap_servers=servers)
    return dataclasses.replace(client, settings=settings), origins


def _of_workers(name: str, workers: Sequence[WorkerConfig]) -> Said | None:
    """What the worker configs say of `name`, of a topic what most of them say; raises UsageError when two disagree."""
    said = [Said(value, each.properties.source) for each in workers if (value := getattr(each, name, None))]
    if name in DEFAULT_TOPICS:
        counts = Counter(each.value for each in said)
        return max(said, key=lambda each: counts[each.value], default=None)
    for other in said[1:]:
        if other.value != said[0].value:
            raise UsageError(
                f"the worker configs disagree on {name}: {said[0].value} in {said[0].origin}, "
                f"{other.value} in {other.origin}",
                hint="Name workers of one Connect cluster only.",
            )
    return said[0] if said else None


def _disagreements(sources: Sources, workers: Sequence[WorkerConfig]) -> Iterator[str]:
    """The topics that worker configs call by different names: a worker of the group has a wrong one, or is none of it.

    It is what checks are to find, so it keeps nobody from looking.
    """
    for name, property_name in _TOPIC_PROPERTIES.items():
        taken = _of_workers(name, workers)
        if taken is None or sources.first(name) is not None:
            continue
        others = [each for each in workers if getattr(each, name) not in (None, taken.value)]
        for other in others[:1]:
            yield (
                f"the worker configs disagree on {property_name}: {taken.value} in {taken.origin}, "
                f"{getattr(other, name)} in {other.properties.source}; {taken.value} is taken for the group's"
            )


def _inline_client(sources: Sources) -> Properties | None:
    """The profile's `client` settings, secrets fetched from where they point to."""
    where = f"{sources.profile_origin}: client"
    settings = sources.section("client")
    if not settings:
        return None
    values: dict[str, str] = {}
    for key, value in settings.items():
        is_secret = key != TOKEN_COMMAND  # which is kept, to be run again and again
        suffix = next((suffix for suffix in SECRET_SUFFIXES if is_secret and key.endswith(suffix)), None)
        name = key.removesuffix(suffix) if suffix else key
        values[name] = sources.fetch(suffix, value, f"{where}: {key}") if suffix else value
    return Properties(where, values)


def _connect_map(sources: Sources) -> tuple[tuple[ConnectMapping, ...], dict[str, str]]:
    said = sources.first("connect_map", many=True)
    return (parse_connect_map(said.value), {"connect_map": said.origin}) if said else ((), {})


def _connect(
    sources: Sources, workers: Sequence[WorkerConfig], connect_map: Sequence[ConnectMapping]
) -> tuple[tuple[WorkerUrl, ...], ConnectAccess, dict[str, str]]:
    """The given URLs, how to show oneself to workers, and who said what of it."""
    given = sources.first("connect_url", many=True)
    urls = tuple(parse_worker_url(url) for url in (given.value if given else ()))
    if given is not None and given.origin == "flag" and any(url.authorization for url in urls):
        raise UsageError(
            "a password on the command line can be read by everyone on this machine",
            hint="Use --connect-username with --connect-password-file, or $EOSCTL_CONNECT_URL.",
        )
    texts = {
        name: sources.first(f"connect_{name}", within="connect") for name in ("ca", "certificate", "key", "username")
    }
    secrets = {
        name: sources.secret(f"connect_{name}", within="connect") for name in ("key_password", "password", "token")
    }
    trust = sources.first("connect_trust_discovered", within="connect")
    said = {name: each for name, each in (texts | secrets).items() if each is not None}
    _check_access(said)
    for each in (said.get("key"), said.get("certificate")):
        if each is not None:
            sources.require_private(each.value, "a private key")
            break
    known = [*urls, *(parse_worker_url(each.rest_url) for each in workers if each.rest_url)]
    access = ConnectAccess(
        **{name: each.value for name, each in said.items()},
        trust_discovered=trust is not None and trust.value.lower() not in ("false", "no", "0"),
        named=frozenset(url.origin for url in known),
        named_hosts=frozenset(origin for each in connect_map for origin in each.named_origins()),
        of_urls={
            parse_worker_url(where).origin: url.authorization
            for url in urls
            if url.authorization is not None
            for where in (url.text, reachable_url(url.text, connect_map))
        },
        proxies=proxies_of(sources.environ),
    )
    origins = {f"connect.{name}": each.origin for name, each in said.items()}
    if trust is not None:
        origins["connect.trust_discovered"] = trust.origin
    return urls, access, origins | ({"connect_url": given.origin} if given else {})


def _check_access(said: Mapping[str, Said]) -> None:
    token, password = said.get("token"), said.get("password")
    if token is not None and password is not None:
        raise UsageError(f"Connect gets a token ({token.origin}) and a password ({password.origin}); give one of them")
    if (password is None) != ("username" not in said) and token is None:
        missing = "password (--connect-password-file)" if password is None else "username (--connect-username)"
        raise UsageError(f"the user of Connect's REST interface has no {missing}")
    if "key" in said and "certificate" not in said:
        raise UsageError("a key for Connect's REST interface needs its certificate (--connect-certificate)")
