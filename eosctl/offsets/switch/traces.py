"""Finds switches that another machine began and did not end, before the config names the new topic. Reads only.

The connector is STOPPED, and its offsets were written to a topic that its config does not name, after it was stopped
and after its config was written last (the remains of a switch back are older than the config); and they are equal to
its present offsets. A mirror of another cluster's offsets topic, or the topic of another group that runs it now, has
others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.connectors.look import store_name, switch_command, topic_of
from eosctl.core.configs.fold import ConfigState
from eosctl.core.configs.records import OFFSETS_TOPIC, RecordKind, decode_key_text, parse_key
from eosctl.core.findings import INFO, WARNING, Finding
from eosctl.core.offsets.records import OffsetKey, decode_key
from eosctl.core.offsets.targets import NEWEST_OFFSETS
from eosctl.core.records import Record
from eosctl.core.wording import counted
from eosctl.errors import EosctlError, InterruptedByUserError
from eosctl.offsets import codes
from eosctl.offsets.lint.past_writes import offsets_set_on_purpose
from eosctl.ports import TopicReader
from eosctl.txn import codes as txn_codes

MOST_CANDIDATES = 100
"""The most topics to read whose names contain "offset" or a connector's name."""
_PATIENCE_S = 10.0
"""Other checks wait for topics without a leader; half of this is enough here."""
IsMeant = Callable[[str, Record], bool]
_Offsets = set[tuple[str, bytes]]
"""Source partitions with their offsets: the identity of a key, and the value."""


class _Newest(Struct, frozen=True):
    """The newest records of candidates by topic, and the topics that were not read, with the reason."""

    of: Mapping[str, Sequence[Record]]
    unread: Mapping[str, str]


def begun_before_the_config(
    app: App, cluster_id: str, connectors: Collection[str], config: ConfigState
) -> list[Finding]:
    """Find those of these STOPPED connectors whose offsets were copied elsewhere since.

    Offsets that eosctl wrote here were set on purpose. Topics that could not be read are reported as well.
    """
    if not connectors:
        return []
    patient = replace(app, deadline=app.deadline.half(at_most_s=_PATIENCE_S))
    try:
        with patient.transactions() as admin:
            there = admin.topic_partitions()
        with patient.topics() as topics:
            since_ms = _at_rest_since_ms(topics.read(app.target.config_topic, keep=_of_connectors).records)
            newest = _newest_of_candidates(topics, _candidates(app, there, connectors, config))
            went = _written_since(newest.of, since_ms, config, offsets_set_on_purpose(app, cluster_id))
            written = [(name, topic) for name, topic in went if name in connectors]
            origins = {name: store_name(app, _own_topic(config, name)) for name, _topic in written}
            found = [
                _finding(name, topic, origins[name])
                for name, topic in written
                if _are_copies(newest.of[topic], name, since_ms[name], _offsets_of(app, topics, origins[name], name))
            ]
    except InterruptedByUserError:
        raise
    except EosctlError as exc:
        return [_not_looked_at(connectors, exc.message)]
    unread = [f"{topic}: {why}" for topic, why in newest.unread.items()]
    return found + ([_not_looked_at(connectors, f"{_topics(unread)} not read ({unread[0]})")] if unread else [])


def _of_connectors(records: Sequence[Record]) -> Sequence[Record]:
    return [record for record in records if (record.key or b"").startswith((b"connector-", b"target-state-"))]


def _own_topic(config: ConfigState, connector: str) -> str | None:
    named = (config.connectors[connector].config or {}).get(OFFSETS_TOPIC)
    return None if named is None else str(named)


def _at_rest_since_ms(records: Iterable[Record]) -> dict[str, int]:
    """Return when the config or the target state of each connector was written last."""
    since: dict[str, int] = {}
    for record in records:
        key = parse_key(decode_key_text(record.key or b""))
        if key.kind in (RecordKind.CONNECTOR, RecordKind.TARGET_STATE):
            since[key.name] = max(since.get(key.name, -1), record.timestamp_ms)
    return since


def _candidates(app: App, topic_names: Collection[str], connectors: Collection[str], config: ConfigState) -> list[str]:
    """Return topics that no config names and that may be offsets topics by name; the likelier ones first."""
    target = app.target
    in_use: set[str | None] = {target.offset_topic, target.config_topic, target.status_topic}
    in_use |= {_own_topic(config, name) for name in config.connectors}
    names = "|".join(re.escape(name) for name in sorted(connectors))
    of_connectors = re.compile(rf"(?<![^\W_])(?:{names})(?![^\W_])")
    others = [topic for topic in sorted(topic_names) if topic not in in_use and not topic.startswith("__")]
    likely = [topic for topic in others if "offset" in topic]
    return likely + [topic for topic in others if "offset" not in topic and of_connectors.search(topic)]


def _newest_of_candidates(topics: TopicReader, names: Sequence[str]) -> _Newest:
    """Read the compacted topics, and those that may be: without DESCRIBE_CONFIGS the policy is unknown."""
    looked_at = names[:MOST_CANDIDATES]
    unread = dict.fromkeys(names[MOST_CANDIDATES:], f"no more than {MOST_CANDIDATES} are looked at")
    described = topics.describe(looked_at)
    compacted = [name for name, each in described.items() if each.config.get("cleanup.policy", "compact") == "compact"]
    if not compacted:
        return _Newest({}, unread)
    try:
        return _Newest(topics.newest_of(compacted, offsets=NEWEST_OFFSETS), unread)
    except InterruptedByUserError:
        raise
    except EosctlError:  # of one topic: read the others by themselves
        return _one_by_one(topics, compacted, unread)


def _one_by_one(topics: TopicReader, names: Iterable[str], unread: Mapping[str, str]) -> _Newest:
    found: dict[str, Sequence[Record]] = {}
    failed: dict[str, str] = {}
    for name in names:
        try:
            found.update(topics.newest_of([name], offsets=NEWEST_OFFSETS))
        except InterruptedByUserError:
            raise
        except EosctlError as exc:
            failed[name] = exc.message
    return _Newest(found, {**failed, **unread})


def _written_since(
    newest: Mapping[str, Sequence[Record]], since_ms: Mapping[str, int], config: ConfigState, is_meant: IsMeant
) -> list[tuple[str, str]]:
    """Return connectors and topics, of topics with only this group's connectors: others are another group's."""
    found = []
    for topic, records in newest.items():
        of = {name for record in records if (name := decode_key(record.key).connector) is not None}
        if of <= config.connectors.keys():
            found += [(name, topic) for name in of if _went_there(name, records, since_ms.get(name), is_meant)]
    return sorted(found)


def _went_there(connector: str, records: Iterable[Record], since_ms: int | None, is_meant: IsMeant) -> bool:
    if since_ms is None:
        return False
    for record in records:
        if decode_key(record.key).connector == connector and record.timestamp_ms > since_ms:
            return not is_meant(connector, record)
    return False


def _offsets_of(app: App, topics: TopicReader, origin: str, connector: str) -> _Offsets:
    """Return the connector's offsets in the topics that it reads from: its own, and the global one."""

    def of_connector(records: Sequence[Record]) -> Sequence[Record]:
        return [record for record in records if decode_key(record.key).connector == connector]

    stores = {topic_of(app, origin), app.target.offset_topic}
    there = topics.describe(sorted(stores))
    reads = [topics.read(topic, newest_per_key=True, keep=of_connector).records for topic in there]
    return {pair for records in reads for record in records for pair in _pairs(record)}


def _pairs(record: Record) -> _Offsets:
    key = decode_key(record.key)
    return {(key.identity, record.value)} if isinstance(key, OffsetKey) and record.value is not None else set()


def _are_copies(records: Iterable[Record], connector: str, since_ms: int, origin: _Offsets) -> bool:
    """Decide whether the connector's records since then are copies of its offsets: a switch changes no offset."""
    since = [each for each in records if decode_key(each.key).connector == connector and each.timestamp_ms > since_ms]
    written = {pair for record in since for pair in _pairs(record)}
    return bool(written) and written <= origin


def _finding(name: str, target: str, origin: str) -> Finding:
    command = switch_command(name, target)
    return Finding(
        codes.SWITCH_BEGUN_ELSEWHERE, WARNING, name,
        f"{name} is STOPPED, and since then its offsets were copied to {target}, which its config does not name (its "
        f"offsets topic is {origin}): a switch may have been cut off on another machine, where it can go on, or is "
        "prepared",
        f"Ask who stopped {name}. `{command} --dry-run` shows what is left of a switch to {target}, and the same "
        f"command without --dry-run goes on. Until then {name} starts on {origin}, as before.",
        {"origin": origin, "target": target},
    )  # fmt: skip


def _topics(names: Sequence[str]) -> str:
    return f"{counted(len(names), 'topic')} {'was' if len(names) == 1 else 'were'}"


def _not_looked_at(connectors: Collection[str], why: str) -> Finding:
    """Return an INFO finding: nothing speaks for a switch, and topics of others are often unreadable."""
    names = sorted(connectors)
    subject = names[0] if len(names) == 1 else counted(len(names), "connector")
    return Finding(
        txn_codes.NOT_CHECKED, INFO, subject,
        f"whether another machine began a switch of {subject}, now STOPPED, is not known: {why}",
        "Grant READ on the topics if you use dedicated offsets topics; else nothing.", certain=False,
    )  # fmt: skip
