"""The resolver of a Target and of access to workers over REST, which records the origin of each value.

It runs nothing but a profile's own `*_command`. The settings for workers come from the same sources as a Target's other
values. Modules that only a worker's settings need are imported once there are any.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from eosctl.core.clients.settings import ClientSettings, checked_servers
from eosctl.core.java.properties import split_list
from eosctl.core.workers.access import ConnectAccess
from eosctl.core.workers.proxies import proxies_of
from eosctl.errors import UsageError
from eosctl.machine.files import NamedFiles
from eosctl.profiles.sources import CONNECT_NAMES, PROFILE_KEYS, ResolvedValue, Sources, as_list, load_profile
from eosctl.target import DEFAULT_TOPICS, Target

if TYPE_CHECKING:
    from eosctl.core.clients.properties import ClientProperties
    from eosctl.core.clients.settings import Secret
    from eosctl.core.workers.config import ConnectMapping, WorkerConfig
    from eosctl.core.workers.url import WorkerUrl


_TEXTS = ("ca", "certificate", "key", "username")
_SECRETS = ("key_password", "password", "token")


def connect_map_of(sources: Sources) -> tuple[tuple[ConnectMapping, ...], dict[str, str]]:
    """Return the value of `--connect-map`, and its origin."""
    given = sources.first("connect_map", many=True)
    if given is None:
        return (), {}
    from eosctl.core.workers.config import parse_connect_map

    return parse_connect_map(given.value), {"connect_map": given.origin}


def connect_access_of(
    sources: Sources, workers: Sequence[WorkerConfig], connect_map: Sequence[ConnectMapping]
) -> tuple[tuple[str, ...], ConnectAccess, dict[str, str]]:
    """Return the given URLs, the credentials for workers, and the origins of both."""
    given = sources.first("connect_url", many=True)
    urls = _given_urls(given)
    credentials = _credentials(sources)
    trust = sources.first("connect_trust_discovered", within="connect")
    known = [*urls, *_worker_urls([each.rest_url for each in workers if each.rest_url])]
    access = ConnectAccess(
        **{name: each.value for name, each in credentials.items()},
        trust_discovered=trust is not None and trust.value.lower() not in ("false", "no", "0"),
        named=frozenset(url.origin for url in known),
        named_hosts=frozenset(origin for each in connect_map for origin in each.named_origins()),
        of_urls=_authorizations(urls, connect_map),
        proxies=proxies_of(sources.environ),
    )
    about = {f"connect.{name}": each for name, each in credentials.items()}
    about |= {"connect.trust_discovered": trust} if trust else {}
    about |= {"connect_url": given} if given else {}
    return tuple(url.text for url in urls), access, {name: each.origin for name, each in about.items()}


def _given_urls(given: ResolvedValue | None) -> tuple[WorkerUrl, ...]:
    """Return the URLs that were named; raise UsageError for a password in one on the command line."""
    urls = _worker_urls(given.value if given else ())
    if given is not None and given.origin == "flag" and any(url.authorization for url in urls):
        raise UsageError(
            "a password on the command line can be read by everyone on this machine",
            hint="Use --connect-username with --connect-password-file, or $EOSCTL_CONNECT_URL.",
        )
    return urls


def _credentials(sources: Sources) -> dict[str, ResolvedValue]:
    """Return the given credentials, checked; raise UsageError, and RefusedError for a key that others can read."""
    texts = {name: sources.first(f"connect_{name}", within="connect") for name in _TEXTS}
    secrets = {name: sources.secret(f"connect_{name}", within="connect") for name in _SECRETS}
    credentials = {name: each for name, each in (texts | secrets).items() if each is not None}
    if "token" in credentials:
        credentials["token"] = _checked_token(credentials["token"])
    _check_access(credentials)
    private = credentials.get("key") or credentials.get("certificate")
    if private is not None:
        sources.files.require_private(private.value, "a private key")
    return credentials


def _checked_token(token: ResolvedValue) -> ResolvedValue:
    """Raise InputFileError for a token that no header can hold, as Python's own error would show it."""
    from eosctl.core.clients.settings import Secret, checked_token

    where = f"the token for Connect's REST interface ({token.origin})"
    return ResolvedValue(Secret(checked_token(token.value.reveal(), where)), token.origin)


def _worker_urls(given: Collection[str]) -> tuple[WorkerUrl, ...]:
    if not given:
        return ()
    from eosctl.core.workers.url import parse_worker_url

    return tuple(map(parse_worker_url, given))


def _authorizations(urls: Collection[WorkerUrl], connect_map: Sequence[ConnectMapping]) -> dict[str, Secret]:
    """Return the credentials in URLs, by the origins that these name and lead to."""
    carried = [(url, url.authorization) for url in urls if url.authorization is not None]
    if not carried:
        return {}
    from eosctl.core.workers.config import reachable_url

    return {
        where.origin: authorization
        for url, authorization in carried
        for where in _worker_urls([url.text, reachable_url(url.text, connect_map)])
    }


def _check_access(credentials: Mapping[str, ResolvedValue]) -> None:
    token, password = credentials.get("token"), credentials.get("password")
    if token is not None and password is not None:
        raise UsageError(f"Connect gets a token ({token.origin}) and a password ({password.origin}); give one of them")
    if (password is None) != ("username" not in credentials) and token is None:
        missing = "password (--connect-password-file)" if password is None else "username (--connect-username)"
        raise UsageError(f"the user of Connect's REST interface has no {missing}")
    if "key" in credentials and "certificate" not in credentials:
        raise UsageError("a key for Connect's REST interface needs its certificate (--connect-certificate)")


_TOPIC_PROPERTIES = {"config_topic": "config.storage.topic", "offset_topic": "offset.storage.topic"}


def resolve_target(
    flags: Mapping[str, object],
    environ: Mapping[str, str],
    *,
    files: NamedFiles,
    fetch_secrets: bool = True,
) -> Target:
    """Resolve the Target, each value from: flag, `EOSCTL_*` environment, profile, worker config, default.

    `flags` holds only given ones. Raises InputFileError for a file that is missing or malformed, UsageError for invalid
    or contradictory values, and RefusedError for a file that others can read or change.
    """
    sources = Sources(flags, environ, files, fetch_secrets)
    profile = load_profile(sources)
    workers_said = sources.first("worker_config", many=True) or ResolvedValue((), "")
    workers = _workers(sources, workers_said.value)
    found_values = {name: sources.first(name) or _of_workers(name, workers) for name in ("group_id", *DEFAULT_TOPICS)}
    disagreements = tuple(_disagreements(sources, workers))
    found_values |= {
        name: found_values[name] or ResolvedValue(value, "default") for name, value in DEFAULT_TOPICS.items()
    }
    found_values |= {"audit_log": sources.first("audit_log"), "profile": profile}
    values = {name: each.value for name, each in found_values.items() if each is not None}
    origins = {name: each.origin for name, each in found_values.items() if each is not None}
    client, found, client_origins = _client(sources, workers)
    connect_map, map_origins = connect_map_of(sources)
    urls, access, access_origins = connect_access_of(sources, workers, connect_map)
    return Target(
        client=client if client.bootstrap_servers else None,
        connect_urls=urls,
        connect=access,
        connect_map=connect_map,
        worker_configs=workers,
        expect=sources.section("expect"),
        ignore=as_list(sources.profile.get("ignore") or ()),
        origins={"worker_config": workers_said.origin, **origins, **client_origins, **access_origins, **map_origins},
        warnings=(
            *(found.warnings if found else ()),
            *(text for each in workers for text in _idle(each)),
            *disagreements,
        ),
        disagreements=disagreements,
        java_refusals=found.java_refusals if found else (),
        notes=(*(found.notes if found else ()), *(note for each in workers for note in _unresolved(each))),
        **values,
    )


def profile_target(
    profile: str,
    flags: Mapping[str, object],
    environ: Mapping[str, str],
    *,
    files: NamedFiles,
) -> Target:
    """Resolve the Target of one profile alone, as in `TOPIC@PROFILE`.

    Of `flags` and `EOSCTL_*` only the config file counts: the others are about the target of this command, not about
    that profile. Raises what `resolve_target` raises.
    """
    said_here = {f"EOSCTL_{name.upper()}" for name in (*PROFILE_KEYS, *CONNECT_NAMES)}
    alone = {name: value for name, value in environ.items() if name not in said_here}
    return resolve_target({"config": flags.get("config"), "profile": profile}, alone, files=files)


def _workers(sources: Sources, paths: Sequence[str]) -> tuple[WorkerConfig, ...]:
    if not paths:
        return ()
    from eosctl.profiles.settings_files import worker_of_file

    return tuple(worker_of_file(sources, path) for path in paths)


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


def _client(
    sources: Sources, workers: Sequence[WorkerConfig]
) -> tuple[ClientSettings, ClientProperties | None, dict[str, str]]:
    """Return security settings from one source, and the bootstrap servers from the first source that has some."""
    origins: dict[str, str] = {}
    found, settings = None, ClientSettings(bootstrap_servers=())
    if workers or sources.first("command_config") is not None or sources.section("client"):
        from eosctl.profiles.settings_files import client_of_files

        found, origins["command_config"] = client_of_files(sources, workers)
        settings = found.settings
    servers = _bootstrap_servers(settings.bootstrap_servers, sources, workers, origins)
    return replace(settings, bootstrap_servers=servers), found, origins


def _bootstrap_servers(
    own: tuple[str, ...], sources: Sources, workers: Sequence[WorkerConfig], origins: dict[str, str]
) -> tuple[str, ...]:
    """Return the settings' `own` servers, or others; record their origin in `origins`."""
    given, client_origin = sources.first("bootstrap_server"), origins.get("command_config", "")
    if own and (given is None or (client_origin == "flag" and given.origin != "flag")):
        servers, origin = own, client_origin
    elif given is not None:
        servers, origin = split_list(given.value), given.origin
    else:
        found = _of_workers("bootstrap_servers", workers)
        servers, origin = (found.value, found.origin) if found else ((), "")
    if not servers and given is None:
        return ()
    origins["bootstrap_server"] = origin
    return checked_servers(servers, origin)


def _of_workers(name: str, workers: Sequence[WorkerConfig]) -> ResolvedValue | None:
    """Return the worker configs' value of `name`, of a topic the most frequent; raise UsageError if they disagree."""
    values = [ResolvedValue(value, each.properties.source) for each in workers if (value := getattr(each, name, None))]
    if name in DEFAULT_TOPICS:
        counts = Counter(each.value for each in values)
        return max(values, key=lambda each: counts[each.value], default=None)
    for other in values[1:]:
        if other.value != values[0].value:
            raise UsageError(
                f"the worker configs disagree on {name}: {values[0].value} in {values[0].origin}, "
                f"{other.value} in {other.origin}",
                hint="Name workers of one Connect cluster only.",
            )
    return values[0] if values else None


def _disagreements(sources: Sources, workers: Sequence[WorkerConfig]) -> Iterator[str]:
    """Yield the topics on which worker configs disagree: a worker of the group has a wrong one, or is of another.

    Checks report it, so it does not stop a command.
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
