"""Names and numbers in texts: transactional ids, URLs, versions, times; and positions in source offsets."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable

from eosctl.core.clients.own_brokers import own_brokers
from eosctl.core.configs.records import UnparsableValueError, decode_value
from eosctl.core.ids import TransactionalId, application_of, groups_of_task, is_own_id, may_be_task, task_of
from eosctl.core.offsets.names import parse_store
from eosctl.core.versions import kafka_version, shown_version
from eosctl.core.workers.config import parse_connect_map
from eosctl.core.workers.proxies import proxies_of
from eosctl.core.workers.url import normalised, parse_worker_url
from eosctl.deadline import Clock
from eosctl.errors import EosctlError
from eosctl.exporter.server import parse_listen
from eosctl.fence.rules import parse_id_lines
from eosctl.group.members import NodeName
from eosctl.group.observation.rules import readings
from eosctl.kafka.topics.stream import parse_address
from eosctl.offsets.history.as_of import as_of
from eosctl.offsets.history.config_changes import compare_configs
from eosctl.offsets.history.events import offset_changes, went_back
from eosctl.offsets.history.gtids import compare_gtids
from eosctl.offsets.history.sources import KNOWN_SOURCES, lsn_number, lsn_texts
from eosctl.state.history import since_ms
from eosctl.txn.applications.rules import ClusterFacts, readings_of
from tests.fuzz.mutation import BETWEEN
from tests.fuzz.reader import DisagreementError, Reader

_KNOWN = ClusterFacts({"connect-cluster": frozenset({"src"})}, frozenset({"app", "group"}), {"topic": 3})
_CLOCK = Clock(now_s=lambda: 1_700_000_000.0)


def _ids(text: str) -> object:
    own = TransactionalId(text)
    if not text:
        return None
    asked = (application_of, groups_of_task, is_own_id, may_be_task, lambda each: list(readings(each)))
    return readings_of(own, _KNOWN), task_of(own, "connect-cluster"), [ask(own) for ask in asked]


_OF_TEXTS: tuple[Callable[[str], object], ...] = (
    *(_ids, parse_store, parse_address, parse_listen, parse_worker_url, normalised, kafka_version, shown_version),
    *(NodeName.read, lsn_number, lambda text: as_of(text, _CLOCK), lambda text: since_ms(text, _CLOCK)),
    *(lambda text: parse_connect_map([text]), lambda text: proxies_of({"https_proxy": text}).of("https://h:1")),
    lambda text: own_brokers({"producer.override.bootstrap.servers": text, "connector.class": text}, here=["h:1"]),
)


def _read_name(data: bytes) -> object:
    text = data.decode("utf-8", "replace")
    readers: list[Callable[[], object]] = [lambda: parse_id_lines(data, source="f")]
    readers += [lambda read=read: read(text) for read in _OF_TEXTS]  # type: ignore[misc]
    return [_taken(read) for read in readers]


def _taken(read: Callable[[], object]) -> object:
    try:
        return read()
    except EosctlError:
        return None


def _names() -> list[bytes]:
    uuid = "12345678-1234-1234-1234-123456789012"
    ids = ("connect-cluster-src-0", f"app-{uuid}-3", "app-1_2", f"x-{'a' * 32}-4", "p-1-2", "tx-group.topic.2", "a-7")
    urls = ("https://u:p@[::1]:8083/a%20b", "http://h:8083", "[::1]:9092", ":9404", "a=http://b:1", "socks5h://p:1080")
    others = ("topic@profile", "7.6.0-ccs", "4.3.1", "3.7.0.redhat-00007", "10.0.0.1/a#2", "16/B374D848", "12h", "17")
    times = ("2026-11-28", "2026-11-21T08:00:00+01:00", "g-1\r\n\n g-2\n")
    return [each.encode() for each in (*ids, *urls, *others, *times)]


def _read_positions(data: bytes) -> object:
    """Two offsets of one source partition, of which the one follows the other."""
    found = []
    for part in data.split(BETWEEN)[:3]:
        try:
            value = decode_value(part)
        except UnparsableValueError:
            continue
        found.append(value if isinstance(value, dict) else {"v": value})
    texts = [str(value) for offset in found for value in offset.values()][:6]
    compared = [compare_gtids(*pair) for pair in itertools.permutations(texts, 2)]
    for before, after in itertools.permutations(found, 2):
        for source in KNOWN_SOURCES:
            went_back(before, after, source), offset_changes(before, after, source)
    return compared, [lsn_texts(each) for each in found]


def _positions() -> list[bytes]:
    gtid = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
    offsets = (
        f'{{"gtids":"{gtid}:1-5,{gtid}:tag:7","file":"mysql-bin.000001","pos":4,"row":0,"server_id":1}}',
        f'{{"gtids":"{gtid}:1-9","file":"mysql-bin.000002","pos":40,"row":0,"server_id":1}}',
        '{"gtids":"0-1-5,1-2-9"}', '{"lsn":23456789,"lsn_proc":5,"txId":6,"ts_usec":1700000000000000}',
        '{"change_lsn":"00000027:00000ac0:0002","commit_lsn":"00000027:00000ac0:0003"}', '{"position":7}',
        '{"scn":"12","commit_scn":"1:2"}',
    )  # fmt: skip
    return [BETWEEN.join(each.encode() for each in pair) for pair in itertools.pairwise([*offsets, offsets[0]])]


def _read_config_partitions(data: bytes) -> object:
    """Two configs and a source partition, as if the configs were of each known class."""
    found = []
    for part in data.split(BETWEEN)[:3]:
        try:
            value = decode_value(part)
        except UnparsableValueError:
            value = {}
        found.append(value if isinstance(value, dict) else {"file": value})
    *configs, partition = found
    texts = [{name: str(value) for name, value in each.items()} for each in (configs or [{}])]
    for kind in (source.classes.split(", ")[0] for source in KNOWN_SOURCES):
        before, after = ({**each, "connector.class": kind} for each in (texts[0], texts[-1]))
        effect = compare_configs(before, after, [partition, None], readable=[0])
        if before == after and effect.starts_over:
            raise DisagreementError(f"{kind} starts over with the config that it has")
    return found


def _config_partitions() -> list[bytes]:
    configs = (
        {"topic.prefix": "s", "database.names": "a,b", "mongodb.name": "s"},
        {"connection.uri": "mongodb://u:p@h,i/x?y", "database": "d", "collection": "c"},
        {"mode": "incrementing", "table.whitelist": 'a,"b"."c"', "connection.url": "jdbc:x"},
        {"mode": "timestamp", "table.blacklist": "a", "query": ""},
        {"topics": "t.*,u", "topics.exclude": ".*x", "source.cluster.alias": "a"},
        {"connect.s3.kcql": "insert into t select * from `b`:p; insert into u select x from c"},
        {"file": "${file:/x:y}", "aws.s3.bucket.name": "b", "aws.s3.prefix": "p/"},
    )
    partitions = ({"server": "s"}, {"ns": "mongodb://h/d"}, {"table": "c", "protocol": "1"}, {"topic": "t"})
    seeds = zip(configs, configs[1:] + configs[:1], (*partitions, *partitions), strict=False)
    return [BETWEEN.join(json.dumps(each).encode() for each in seed) for seed in seeds]


NAMES = [
    Reader("names", _read_name, _names),
    Reader("positions", _read_positions, _positions),
    Reader("config partitions", _read_config_partitions, _config_partitions),
]
