"""A switch that another machine began and did not end, before the config names the new topic. Reads only.

The connector is STOPPED, and its offsets were written to a topic that its config does not name, after it was stopped
and after its config was written last: what a switch back leaves behind is older than the config.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from shlex import quote

from eosctl.core.config_records import OFFSETS_TOPIC, RecordKind, decode_key_text, parse_key
from eosctl.core.config_topic import ConfigState
from eosctl.core.findings import WARNING, Finding
from eosctl.core.offset_records import OffsetKey, decode_key
from eosctl.core.offset_targets import NEWEST_OFFSETS
from eosctl.core.records import Record
from eosctl.core.store_names import GLOBAL
from eosctl.errors import EosctlError, InterruptedByUserError
from eosctl.ops.app import App
from eosctl.ops.past_writes import offsets_set_on_purpose
from eosctl.ops.ports import TopicStore
from eosctl.ops.switch_look import switch_command

MOST_CANDIDATES = 100
"""So many topics are looked at whose names speak of offsets, or of a connector."""
IsMeant = Callable[[str, Record], bool]


def begun_before_the_config(
    app: App, cluster_id: str, connectors: Collection[str], config: ConfigState
) -> list[Finding]:
    """One for each of these STOPPED connectors whose offsets went elsewhere since; what eosctl wrote here was meant.

    That a topic can't be read is for others to say.
    """
    if not connectors:
        return []
    try:
        with app.transactions() as admin:
            there = admin.topic_partitions()
        with app.topics() as topics:
            since_ms = _at_rest_since_ms(topics.read(app.target.config_topic, sieve=_of_connectors).records)
            newest = _newest_of_candidates(app, topics, there, connectors, config)
    except InterruptedByUserError:
        raise
    except EosctlError:
        return []
    is_meant = offsets_set_on_purpose(app, cluster_id)
    found = []
    for name in sorted(connectors):
        for topic, records in newest.items():
            if _went_there(name, records, since_ms.get(name), is_meant):
                found.append(_finding(name, config, topic))
    return found


def _of_connectors(records: Sequence[Record]) -> Sequence[Record]:
    return [record for record in records if (record.key or b"").startswith((b"connector-", b"target-state-"))]


def _at_rest_since_ms(records: Iterable[Record]) -> dict[str, int]:
    """When the config or the target state of each connector was written last."""
    since: dict[str, int] = {}
    for record in records:
        key = parse_key(decode_key_text(record.key or b""))
        if key.kind in (RecordKind.CONNECTOR, RecordKind.TARGET_STATE):
            since[key.name] = max(since.get(key.name, -1), record.timestamp_ms)
    return since


def _newest_of_candidates(
    app: App, topics: TopicStore, there: Collection[str], connectors: Collection[str], config: ConfigState
) -> Mapping[str, Sequence[Record]]:
    """The newest records of compacted topics that no config names, and whose names may be those of offsets topics."""
    target = app.target
    in_use = {target.offset_topic, target.config_topic, target.status_topic}
    in_use |= {str(each.config.get(OFFSETS_TOPIC)) for each in config.connectors.values() if each.config}
    named = [
        topic
        for topic in sorted(there)
        if topic not in in_use and ("offset" in topic or any(name in topic for name in connectors))
    ]
    described = topics.describe([each for each in named if not each.startswith("__")][:MOST_CANDIDATES])
    compacted = [name for name, each in described.items() if each.config.get("cleanup.policy") == "compact"]
    return topics.newest_of(compacted, offsets=NEWEST_OFFSETS) if compacted else {}


def _went_there(connector: str, records: Iterable[Record], since_ms: int | None, is_meant: IsMeant) -> bool:
    if since_ms is None:
        return False
    for record in records:
        key = decode_key(record.key)
        if isinstance(key, OffsetKey) and key.connector == connector and record.timestamp_ms > since_ms:
            return not is_meant(connector, record)
    return False


def _finding(name: str, config: ConfigState, target: str) -> Finding:
    known = config.connectors[name].config or {}
    origin = str(known.get(OFFSETS_TOPIC) or GLOBAL)
    return Finding(
        "switch_begun_elsewhere", WARNING, name,
        f"{name} is STOPPED, and since then offsets of it were written to {target}, which its config does not name "
        f"({origin}): a switch may have been cut off on another machine, where it can go on, or is prepared",
        f"Else `{switch_command(name, target)}` goes on, and `eosctl connectors resume {quote(name)}` starts it then; "
        f"without the first it starts on {origin}, as before.",
        {"origin": origin, "target": target}, certain=False,
    )  # fmt: skip
