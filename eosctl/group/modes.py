"""The evidence, from outside, for a worker's `exactly.once.source.support`. Pure.

Connect has no request that returns the mode. Validating a connector with `exactly.once.support=required` shows whether
the worker is `enabled`; `preparing` and `disabled` answer alike, and only a worker's file distinguishes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from eosctl.core.java.properties import is_reference, trimmed
from eosctl.core.workers.advertised_url import advertised
from eosctl.core.workers.mirror_makers import CLUSTERS
from eosctl.core.workers.modes import CONNECT_SETTING, Mode

PROPERTY = "exactly.once.support"
# AbstractHerder/DistributedHerder.validateSourceConnectorConfig, the same words from 3.3 to 4.3
NOT_ENABLED_TEXT = "does not have exactly-once source support enabled"

# These validate without reaching out to anything, and leave no error in the worker's log. With `probe_config` none of
# them supports exactly-once, to which every worker of a group objects. MirrorSourceConnector comes last: it replaces
# the worker's own verdict on the property by one on its consumer, so it shows nothing.
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


def probe_plugins(plugins: Iterable[Mapping[str, object]]) -> list[str]:
    """Return the classes of the source plugins to validate with, best first.

    A plugin without a version may be one that the worker can't load.
    """
    versions = {str(each.get("class")): each.get("version") for each in plugins if each.get("type") == "source"}
    order = {name: index for index, name in enumerate((*_HARMLESS, "", _LAST))}  # all others stand where "" does
    return sorted(versions, key=lambda name: (not versions[name], order.get(name, order[""]), name))


def probe_config(plugin: str) -> dict[str, str]:
    """Return the connector configuration to validate; nothing is created from it."""
    return {"name": "eosctl-probe", "connector.class": plugin, "tasks.max": "1", PROPERTY: "required"} | _NEEDED.get(
        plugin, {}
    )


def mode_of_validation(answer: Mapping[str, object]) -> Mode:
    """Read the mode from the answer to `probe_config`: enabled, not_enabled or unknown.

    The number of errors proves nothing. A connector may replace the worker's verdict by its own; then the requested
    value is missing from the answer.
    """
    value = _config_value(answer)
    errors = value.get("errors")
    texts = [str(text) for text in errors] if isinstance(errors, list) else []
    if any(NOT_ENABLED_TEXT in text for text in texts):
        return Mode.NOT_ENABLED
    return Mode.ENABLED if value.get("value") == "required" else Mode.UNKNOWN


def is_standalone(plugin: str, answer: Mapping[str, object]) -> bool:
    """Decide whether the worker is standalone: it has no objection, where a distributed worker has one at least.

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


class WorkerFileSettings(Struct, frozen=True):
    """The settings in a worker's .properties file; None if missing, or if only the worker can resolve it.

    `unresolved` are the properties whose values refer to a config provider of the worker. A `mirror_maker`'s file has
    no address of a worker.
    """

    path: str
    mode: str | None
    group_id: str | None
    host: str | None
    port: int | None
    unresolved: tuple[str, ...] = ()
    mirror_maker: bool = False


def read_worker_file(path: str, properties: Mapping[str, str]) -> WorkerFileSettings:
    """Read mode, group and advertised address from `properties`, with the defaults of `DistributedConfig` (4.3)."""
    where = advertised(properties)
    mode = trimmed(properties.get(CONNECT_SETTING, "disabled")).lower()
    group_id = trimmed(properties.get("group.id", ""))
    unresolved = [name for name in (CONNECT_SETTING, "group.id") if is_reference(properties.get(name, ""))]
    return WorkerFileSettings(
        path=path,
        mode=None if CONNECT_SETTING in unresolved else mode,
        group_id=None if "group.id" in unresolved else group_id or None,
        host=where.host,
        port=where.port,
        unresolved=(*unresolved, *where.unresolved),
        mirror_maker=CLUSTERS in properties,
    )


def files_of(url: str | None, files: Sequence[WorkerFileSettings], *, group_id: str | None) -> list[WorkerFileSettings]:
    """Return the files that may belong to the worker at `url`: those with its host, else those without a host.

    A file with the host and an unknown port may belong to it, too. A dedicated MirrorMaker's file may belong to each of
    the group's workers; a worker without a URL has no other file.
    """
    of_group = [file for file in files if group_id is None or file.group_id in (None, group_id)]
    mirrored = [file for file in of_group if file.mirror_maker]
    if url is None or mirrored:
        return mirrored
    parts = urlsplit(url)
    exact = [file for file in of_group if file.host == parts.hostname and file.port in (None, parts.port)]
    return exact or [file for file in of_group if file.host is None and file.port == parts.port]


class RefinedMode(Struct, frozen=True):
    """The mode that probe and files prove together, the evidence that the files add, and their errors."""

    mode: Mode
    evidence: tuple[str, ...] = ()
    contradiction: str | None = None


def mode_of_files(files: Sequence[WorkerFileSettings]) -> RefinedMode:
    """Derive the mode from the files alone, for a worker that no request reaches."""
    modes = {file.mode for file in files}
    evidence = tuple(f"{file.path} says {file.mode or 'what only the worker can resolve'}" for file in files)
    if len(modes) != 1 or None in modes:
        return RefinedMode(Mode.UNKNOWN, evidence)
    return RefinedMode(Mode(str(modes.pop())), tuple(f"{text}, which no request can confirm" for text in evidence))


def refine_mode(probed: Mode, files: Sequence[WorkerFileSettings]) -> RefinedMode:
    """Combine probe and files; a file never overrules the probe, as a worker may run with an older version of it."""
    untold = tuple(
        f"{file.path}: only the worker can resolve its {CONNECT_SETTING}" for file in files if file.mode is None
    )
    files = [file for file in files if file.mode is not None]
    if untold:
        refined = refine_mode(probed, files)
        return replace(refined, evidence=(*refined.evidence, *untold))
    evidence = tuple(f"{file.path} says {file.mode}" for file in files)
    modes = {str(file.mode) for file in files}
    if len(modes) != 1:
        return _contradiction(probed, (f"files disagree: {', '.join(evidence)}",)) if evidence else RefinedMode(probed)
    mode = modes.pop()
    if probed is Mode.NOT_ENABLED and mode in (Mode.PREPARING, Mode.DISABLED):
        return RefinedMode(Mode(mode), evidence)
    if probed is Mode.UNKNOWN:
        return RefinedMode(probed, tuple(f"{text}, which nothing confirms" for text in evidence))
    if probed.value == mode:
        return RefinedMode(probed, evidence)
    otherwise = "but the worker runs otherwise: it was not restarted since, or reads another file"
    return _contradiction(probed, tuple(f"{text}, {otherwise}" for text in evidence))


def _contradiction(probed: Mode, evidence: tuple[str, ...]) -> RefinedMode:
    return RefinedMode(probed, evidence, contradiction="; ".join(evidence))
