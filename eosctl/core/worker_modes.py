"""What can be known of a worker's `exactly.once.source.support` from outside, and on which evidence. Pure.

Connect has no request that tells the mode. Validating a connector with `exactly.once.support=required` shows whether
the worker that was asked is `enabled`; `preparing` and `disabled` answer alike, only a worker's file tells them apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum, unique
from urllib.parse import urlsplit

PROPERTY = "exactly.once.support"
# AbstractHerder/DistributedHerder.validateSourceConnectorConfig, the same words from 3.3 to 4.3
NOT_ENABLED_TEXT = "does not have exactly-once source support enabled"

# These validate without reaching out to anything, and leave no error in the worker's log. With `probe_config` none of
# them supports exactly-once, to which every worker of a group objects. MirrorSourceConnector comes last: it replaces
# the worker's own verdict on the property by one on its consumer, so it can't tell.
_FILE_STREAM = "org.apache.kafka.connect.file.FileStreamSourceConnector"
_HARMLESS = (
    _FILE_STREAM,
    "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector",
    "org.apache.kafka.connect.mirror.MirrorCheckpointConnector",
    "org.apache.kafka.connect.tools.VerifiableSourceConnector",
    "org.apache.kafka.connect.tools.SchemaSourceConnector",
    "org.apache.kafka.connect.tools.MockSourceConnector",
)
# Without it its own check of exactly-once fails, which the worker logs as an ERROR with its stack trace.
_NEEDED = {_FILE_STREAM: {"topic": "eosctl-probe"}}
_LAST = "org.apache.kafka.connect.mirror.MirrorSourceConnector"


@unique
class WorkerMode(StrEnum):
    """`not_enabled` is preparing or disabled, and nobody can tell which."""

    ENABLED = "enabled"
    NOT_ENABLED = "not_enabled"
    PREPARING = "preparing"
    DISABLED = "disabled"
    UNKNOWN = "unknown"


def probe_plugins(plugins: Iterable[Mapping[str, object]]) -> list[str]:
    """The classes of the source plugins to validate with, best first."""
    classes = {str(plugin.get("class")) for plugin in plugins if plugin.get("type") == "source"}
    known = [name for name in _HARMLESS if name in classes]
    last = [_LAST] if _LAST in classes else []
    return known + sorted(classes - {*_HARMLESS, _LAST}) + last


def probe_config(plugin: str) -> dict[str, str]:
    """The connector configuration to validate; nothing is created from it."""
    return {"name": "eosctl-probe", "connector.class": plugin, "tasks.max": "1", PROPERTY: "required"} | _NEEDED.get(
        plugin, {}
    )


def mode_of_validation(answer: Mapping[str, object]) -> WorkerMode:
    """What the answer to `probe_config` says: enabled, not_enabled or unknown.

    The number of errors says nothing. A connector may put its own verdict in place of the worker's; then the value
    that was asked about is missing from the answer.
    """
    value = _config_value(answer)
    errors = value.get("errors")
    texts = [str(text) for text in errors] if isinstance(errors, list) else []
    if any(NOT_ENABLED_TEXT in text for text in texts):
        return WorkerMode.NOT_ENABLED
    return WorkerMode.ENABLED if value.get("value") == "required" else WorkerMode.UNKNOWN


def is_standalone(plugin: str, answer: Mapping[str, object]) -> bool:
    """Whether the worker objects to nothing, where every worker of a group objects to the connector at least.

    `StandaloneHerder` does not look at the property at all (3.3 to 4.3).
    """
    value = _config_value(answer)
    return plugin in _HARMLESS and value.get("value") == "required" and not value.get("errors")


def _config_value(answer: Mapping[str, object]) -> Mapping[str, object]:
    configs = answer.get("configs")
    for entry in configs if isinstance(configs, list) else []:
        value = entry.get("value") if isinstance(entry, Mapping) else None
        if isinstance(value, Mapping) and value.get("name") == PROPERTY:
            return value
    return {}


@dataclass(frozen=True, slots=True)
class WorkerFile:
    """What a worker's .properties file says; `host` is None where it binds to every address."""

    path: str
    mode: str
    group_id: str | None
    host: str | None
    port: int | None


def read_worker_file(path: str, properties: Mapping[str, str]) -> WorkerFile:
    """Mode, group and advertised address of `properties`, with the defaults of `DistributedConfig` (4.3)."""
    listener = urlsplit(properties.get("listeners", "").split(",")[0].strip() or "http://:8083")
    host = properties.get("rest.advertised.host.name") or listener.hostname
    try:
        port = int(properties.get("rest.advertised.port") or listener.port or 8083)
    except ValueError:
        port = None
    return WorkerFile(
        path=path,
        mode=properties.get("exactly.once.source.support", "disabled").strip().lower(),
        group_id=properties.get("group.id"),
        host=None if host in (None, "", "0.0.0.0", "::") else host.lower(),  # noqa: S104 - compared, not bound to
        port=port,
    )


def files_of(url: str, files: Sequence[WorkerFile], *, group_id: str | None) -> list[WorkerFile]:
    """The files that may be of the worker at `url`: those that name its host, else those that name no host."""
    parts = urlsplit(url)
    same_port = [
        file for file in files if file.port == parts.port and (group_id is None or file.group_id in (None, group_id))
    ]
    exact = [file for file in same_port if file.host == parts.hostname]
    return exact or [file for file in same_port if file.host is None]


@dataclass(frozen=True, slots=True)
class Refined:
    """The mode that probe and files prove together, what the files add as evidence, and what they get wrong."""

    mode: WorkerMode
    said: tuple[str, ...] = ()
    contradiction: str | None = None


def refine_mode(probed: WorkerMode, files: Sequence[WorkerFile]) -> Refined:
    """Joins probe and files; a file never overrules the probe: a worker may run with an older version of it."""
    said = tuple(f"{file.path} says {file.mode}" for file in files)
    modes = {file.mode for file in files}
    if len(modes) != 1:
        return _contradicted(probed, (f"files disagree: {', '.join(said)}",)) if said else Refined(probed)
    mode = modes.pop()
    if probed is WorkerMode.NOT_ENABLED and mode in (WorkerMode.PREPARING, WorkerMode.DISABLED):
        return Refined(WorkerMode(mode), said)
    if probed is WorkerMode.UNKNOWN:
        return Refined(probed, tuple(f"{text}, which nothing confirms" for text in said))
    if probed.value == mode:
        return Refined(probed, said)
    otherwise = "but the worker runs otherwise: it was not restarted since, or reads another file"
    return _contradicted(probed, tuple(f"{text}, {otherwise}" for text in said))


def _contradicted(probed: WorkerMode, said: tuple[str, ...]) -> Refined:
    return Refined(probed, said, contradiction="; ".join(said))
