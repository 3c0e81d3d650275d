"""The members of the config file, declared once: the reader knows the names, and editors the schema that is made of it.

YAML reads `9092` and `true` as no text; the reader takes them as the text that stands there.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Struct, UnsetType

Word = str | int | float | bool
Value = Word | None
"""A member without a value counts as one that is not there."""
Expectable = Literal["enabled", "preparing", "disabled"]
Values = Word | list[Word] | None
"""One value, or several: a list, or text with commas."""


class Connect(Struct, frozen=True):
    """The member `connect` of a profile: how workers are asked over REST."""

    ca: Annotated[Value, "A file with the PEM CA certificates of the workers' REST API."] | UnsetType = UNSET
    certificate: Annotated[Value, "A file with the PEM client certificate."] | UnsetType = UNSET
    key: Annotated[Value, "A file with its PEM key, if that is another file."] | UnsetType = UNSET
    username: Annotated[Value, "The user name for basic authentication."] | UnsetType = UNSET
    trust_discovered: (
        Annotated[Value, "true: also send credentials, configs and signatures to workers that were discovered."]
        | UnsetType
    ) = UNSET
    key_password_env: Annotated[Value, "The variable that holds the password of the key."] | UnsetType = UNSET
    key_password_file: Annotated[Value, "The file that holds it, with mode 0600."] | UnsetType = UNSET
    key_password_command: Annotated[Value, "The command that prints it."] | UnsetType = UNSET
    password_env: Annotated[Value, "The variable that holds the password of `username`."] | UnsetType = UNSET
    password_file: Annotated[Value, "The file that holds it, with mode 0600."] | UnsetType = UNSET
    password_command: Annotated[Value, "The command that prints it."] | UnsetType = UNSET
    token_env: Annotated[Value, "The variable that holds the bearer token for workers."] | UnsetType = UNSET
    token_file: Annotated[Value, "The file that holds it, with mode 0600."] | UnsetType = UNSET
    token_command: Annotated[Value, "The command that prints it."] | UnsetType = UNSET


class ExpectedTarget(Struct, frozen=True):
    """The member `expect` of a profile: a write to anything else is refused."""

    kafka_cluster_id: Annotated[Value, "The id of the Kafka cluster."] | UnsetType = UNSET
    group_id: Annotated[Value, "The name of the Connect group."] | UnsetType = UNSET
    mode: Annotated[Expectable | None, "The mode that doctor expects of each worker."] | UnsetType = UNSET


class Profile(Struct, frozen=True):
    """A profile: where a cluster and its Connect group are, and which credentials to use."""

    bootstrap_server: Annotated[Values, "Brokers of the cluster with Connect's internal topics."] | UnsetType = UNSET
    command_config: Annotated[Value, "A file of client settings: client.properties."] | UnsetType = UNSET
    client: (
        Annotated[
            dict[str, Value] | None,
            "Client settings by their names in client.properties. A password is NAME_env, _file or _command.",
        ]
        | UnsetType
    ) = UNSET
    connect_url: Annotated[Values, "REST URLs of workers, without passwords."] | UnsetType = UNSET
    connect_map: Annotated[Values, "ADVERTISED=REACHABLE: where a worker is reached instead."] | UnsetType = UNSET
    connect: Annotated[Connect | None, "Credentials for workers."] | UnsetType = UNSET
    group_id: Annotated[Value, "Connect's group.id."] | UnsetType = UNSET
    worker_config: Annotated[Values, "The .properties files of workers."] | UnsetType = UNSET
    config_topic: Annotated[Value, "config.storage.topic."] | UnsetType = UNSET
    offset_topic: Annotated[Value, "offset.storage.topic, the global offsets topic."] | UnsetType = UNSET
    status_topic: Annotated[Value, "status.storage.topic."] | UnsetType = UNSET
    audit_log: Annotated[Value, "The file that records every write."] | UnsetType = UNSET
    expect: Annotated[ExpectedTarget | None, "What every plan is compared with."] | UnsetType = UNSET
    ignore: Annotated[Values, "Findings that doctor only counts: CODE or CODE:SUBJECT."] | UnsetType = UNSET


class Config(Struct, frozen=True):
    """The config file."""

    current: Annotated[Value, "The profile of commands that name none."] | UnsetType = UNSET
    profiles: Annotated[dict[str, Profile | None] | None, "The profiles, by name."] | UnsetType = UNSET


CONFIG_FILE = "config-file"
"""The name of its schema."""
WHAT = "The config file with the profiles, which eosctl reads."


def config_schema() -> dict[str, object]:
    """Return the JSON Schema of the config file: a member that the reader refuses is a fault.

    At the top the reader takes any member; anchors are kept there.
    """
    from eosctl.core.clients.properties import SECRET_NAMES
    from eosctl.output.json_schema import schema_of_type

    schema: dict[str, Any] = schema_of_type(Config)
    _refuse_others(schema)
    schema.pop("additionalProperties")
    profile = schema["properties"]["profiles"]["anyOf"][0]["additionalProperties"]["anyOf"][0]
    profile["properties"]["client"]["anyOf"][0]["propertyNames"] = {"not": {"enum": sorted(SECRET_NAMES)}}
    about = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": CONFIG_FILE, "description": WHAT}
    return {**about, **schema}


def _refuse_others(schema: dict[str, Any]) -> None:
    """Make every object of `schema` with named members refuse others."""
    if schema.get("type") == "object":
        schema.setdefault("additionalProperties", False)
    others = schema.get("additionalProperties")
    below = [*schema.get("properties", {}).values(), *schema.get("anyOf", ()), *([others] if others else [])]
    for each in below:
        _refuse_others(each)
