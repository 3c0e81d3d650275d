"""Reads client settings and workers' configs from files, and from the `client` section of a profile."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from eosctl.core.clients.properties import ClientProperties, client_from_properties, secrets_in
from eosctl.core.clients.sasl import KINIT_COMMAND, TOKEN_COMMAND
from eosctl.core.java.lists import split_list
from eosctl.core.java.properties import Properties, parse_properties
from eosctl.core.workers.config import WorkerConfig, parse_worker_config
from eosctl.profiles.sources import SECRET_SUFFIXES, Sources


def client_of_files(sources: Sources, workers: Sequence[WorkerConfig]) -> tuple[ClientProperties, str]:
    """Return the settings, and their origin: the settings file, the profile's `client`, or the first of `workers`.

    At least one of them is given. Raises InputFileError, and what `require_private` raises.
    """
    file = sources.first("command_config")
    inline = _inline_client(sources)
    if file is not None and (inline is None or file.origin != sources.profile_origin):
        client, origin = client_from_properties(_client_file(sources, file.value)), file.origin
    elif inline is not None:
        text = _client_file(sources, file.value).values if file is not None else {}
        client = client_from_properties(Properties(inline.source, {**text, **inline.values}))
        origin = sources.profile_origin
    else:
        client, origin = workers[0].client(), workers[0].properties.source
    if sources.fetch_secrets and client.stores:
        from eosctl.profiles.java_stores import with_stores

        client = replace(client, settings=with_stores(client, sources.files))
    for path in (client.settings.ssl_key_location, client.settings.oauth_token_file):
        if path is not None and sources.fetch_secrets:
            sources.files.require_private(path, "a secret")
    return client, origin


def worker_of_file(sources: Sources, path: str) -> WorkerConfig:
    """Read a worker's file; raise InputFileError, UsageError, and what `require_private` raises."""
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


def _java_text(sources: Sources, path: str) -> str:
    """Read a file as `java.util.Properties.load(InputStream)`, and so every Kafka tool, reads it."""
    return sources.files.read(path).decode("iso-8859-1")


def _require_private(sources: Sources, path: str, properties: Properties) -> None:
    """Require that only its owner can read a file with passwords, or change a file with a command."""
    if secrets := secrets_in(properties):
        sources.files.require_private(path, secrets[0])
    if {TOKEN_COMMAND, KINIT_COMMAND} & properties.values.keys() and sources.fetch_secrets:
        sources.files.require_private(path, "a command that eosctl runs", readable=True)


def _inline_client(sources: Sources) -> Properties | None:
    """Return the profile's `client` settings, with fetched secrets."""
    where = f"{sources.profile_origin}: client"
    settings = sources.section("client")
    if not settings:
        return None
    values: dict[str, str] = {}
    for key, value in settings.items():
        is_secret = key != TOKEN_COMMAND  # which is kept, as it runs repeatedly
        suffix = next((suffix for suffix in SECRET_SUFFIXES if is_secret and key.endswith(suffix)), None)
        name = key.removesuffix(suffix) if suffix else key
        values[name] = sources.fetch(suffix, value, f"{where}: {key}") if suffix else value
    return Properties(where, values)
