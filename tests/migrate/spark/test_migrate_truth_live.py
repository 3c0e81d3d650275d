"""A migration on a real broker against a computation in plain Python: key by key, byte by byte, partition by partition.

The computation knows what was produced, and nothing of eosctl's rule. `pytest --big` takes 200,000 records.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from dataclasses import replace as with_other
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from eosctl.core.configs.records import Selection
from eosctl.core.offsets.names import partition_for
from eosctl.core.offsets.views import Policy
from eosctl.errors import ExitCode
from eosctl.migrate.plan import MigrationRequest
from eosctl.migrate.rows import MigrationSummary
from eosctl.migrate.run import Engine, prepared_migration
from eosctl.report import plain
from tests.migrate.spark.cluster import DOWN, PARTITIONS, Cluster, app
from tests.sandbox_fixtures import PATIENCE_S

pytestmark = [pytest.mark.live, pytest.mark.spark]

CONNECTORS = 300
RENAMES = {"c7": "moved", "c8": "c9"}
OPEN_PARTITION = 3
START_MS = int(time.time() * 1000) - 3_600_000
"""An hour ago: what is older than the topics' compaction lag might be compacted meanwhile."""
GARBAGE = (b"", b"not json", b"\xff\xfe", b'["c1"]', b'["c1",[]]', b"[1,{}]", b'{"c1":{}}')
DELETIONS = (None, b"", b"null", b" null ")
Versions = list[tuple[int, bytes | None]]


def random_value(rng: random.Random, number: int) -> bytes | None:
    if rng.random() < 0.15:
        return rng.choice(DELETIONS)
    return b'{"position":%d,"\xc3\xbc":"x"}' % (number % 50)


@dataclass
class Log:
    """What a topic holds for committed readers: (partition, key) -> (time, value) of its versions, in order."""

    topic: str
    versions: dict[tuple[int, bytes], Versions] = field(default_factory=lambda: defaultdict(list))
    records: int = 0

    def newest(self) -> dict[bytes, tuple[int, int, bytes | None]]:
        """Key -> (partition, time, value): by offset within a partition, by time across; no two times are equal."""
        found: dict[bytes, tuple[int, int, bytes | None]] = {}
        for (partition, key), versions in self.versions.items():
            time_ms, value = versions[-1]
            if key not in found or found[key][1] < time_ms:
                found[key] = (partition, time_ms, value)
        return found

    def content(self) -> dict[tuple[int, bytes], bytes | None]:
        """(partition, key) -> the newest value there."""
        return {where: versions[-1][1] for where, versions in self.versions.items()}


class Writer:
    """Produces with times that rise by one, and remembers what committed readers may see."""

    def __init__(self, cluster: Cluster, rng: random.Random) -> None:
        self.cluster, self.rng, self.now_ms = cluster, rng, START_MS

    def write(self, log: Log, keys: list[bytes], *, outcome: str = "committed", hidden: bool = False) -> Producer:
        """Writes one record per key; `outcome` committed, aborted or open, each in a transaction."""
        producer = Producer(
            {
                "bootstrap.servers": self.cluster.servers,
                "transactional.id": f"{log.topic}-{self.now_ms}",
                "transaction.timeout.ms": 900_000,  # the open one has to outlive the whole test
            }
        )
        producer.init_transactions(PATIENCE_S)
        producer.begin_transaction()
        for number, key in enumerate(keys):
            self.now_ms += 1
            value = random_value(self.rng, number)
            wrong = self.rng.random() < 0.02 and not hidden
            partition = self.rng.randrange(PARTITIONS) if wrong else partition_for(key, PARTITIONS)
            producer.produce(log.topic, value, key, partition, timestamp=self.now_ms)
            if number % 1000 == 0:
                producer.poll(0)
            if outcome == "committed" and not hidden:
                log.versions[partition, key].append((self.now_ms, value))
                log.records += 1
        assert producer.flush(PATIENCE_S) == 0
        if outcome != "open":
            (producer.commit_transaction if outcome == "committed" else producer.abort_transaction)(PATIENCE_S)
        return producer


def source_keys(rng: random.Random, count: int) -> list[bytes]:
    """Mostly keys of the selected connectors, in two spellings; some of others, some of nobody."""
    keys = []
    for _ in range(count):
        name, part = b"c%d" % rng.randrange(CONNECTORS), rng.randrange(max(4, count // CONNECTORS // 3))
        space = b" " if rng.random() < 0.1 else b""
        key = b'["%s",%s{"file":"\xc3\xbc%d"}]' % (name, space, part)
        if rng.random() < 0.01:
            key = rng.choice((*GARBAGE, b'["other",{"file":"x"}]', b'["c5",null]'))
        keys.append(key)
    return keys


@contextmanager
def written(cluster: Cluster, records: int) -> Iterator[tuple[Log, Writer]]:
    """The source: three quarters committed, the rest superseded by what readers must not see."""
    rng = random.Random(records)  # noqa: S311 - the same records every time
    log, writer = Log(cluster.name), Writer(cluster, rng)
    keys = source_keys(rng, records)
    writer.write(log, keys[: records // 2])
    writer.write(log, keys[: records // 8], outcome="aborted")
    writer.write(log, keys[records // 2 :])
    behind = [key for key in keys if partition_for(key, PARTITIONS) == OPEN_PARTITION][:50]
    held = writer.write(log, behind[:1], outcome="open", hidden=True)
    writer.write(log, behind, hidden=True)
    try:
        yield log, writer
    finally:
        held.abort_transaction(PATIENCE_S)


def owner(key: bytes) -> str | None:
    """The connector whose key it is; None for nobody's."""
    try:
        name, partition = json.loads(key)
    except (ValueError, TypeError):
        return None
    return name if isinstance(name, str) and isinstance(partition, dict | None) else None


def renamed(key: bytes) -> tuple[bytes, bool] | None:
    """The key in the target, and whether its connector's name changed; None for what is not selected."""
    name = owner(key)
    if name is None or not name.startswith("c"):
        return None
    if name not in RENAMES:
        return key, False
    return key.replace(b'"%s"' % name.encode(), b'"%s"' % RENAMES[name].encode(), 1), True


def says(value: bytes | None) -> bytes | None:
    return None if value in DELETIONS else value


Claims = list[tuple[bool, int, bytes | None]]
"""What the source has for one key of the target: (under another name, time, value)."""


def computed(source: Log, target: Log, policy: Policy) -> tuple[dict[tuple[int, bytes], bytes | None], dict[str, Any]]:
    """(partition, key) -> value of the target afterwards, and how many records and keys come to which end."""
    claims: dict[bytes, Claims] = defaultdict(list)
    for key, (_partition, time_ms, value) in source.newest().items():
        final = renamed(key)
        if final is not None:
            claims[final[0]].append((final[1], time_ms, says(value)))
    there, after = target.newest(), target.content()
    counts = {"write": 0, "delete": 0, "keep": 0, "conflict": 0}
    conflicts = 0
    for key, wanted in claims.items():
        _, time_ms, value = strongest(wanted, policy)
        collided = len({value for _, _, value in wanted}) > 1
        differs = key in there and says(there[key][2]) != value
        stays = policy is Policy.KEEP_TARGET or (policy is Policy.NEWEST and differs and time_ms <= there[key][1])
        if policy is Policy.FAIL and (collided or differs):
            action = "conflict"
        elif (differs and stays) or (key in there and not differs) or (key not in there and value is None):
            action = "keep"
        else:
            action = "delete" if value is None else "write"
        counts[action] += 1
        conflicts += collided or differs
        if action in ("write", "delete"):
            partition = there[key][0] if key in there else partition_for(key, PARTITIONS)
            after[partition, key] = value
    return after, {**source_counts(source, claims), "counts": counts, "conflicts": conflicts}


def strongest(wanted: Claims, policy: Policy) -> tuple[bool, int, bytes | None]:
    """The newest; else a renamed key stands for what comes, the other for what is there."""
    if policy is Policy.NEWEST:
        return max(wanted, key=lambda claim: claim[1])
    return next((claim for claim in wanted if claim[0] is (policy is Policy.TAKE_SOURCE)), wanted[0])


def source_counts(source: Log, claims: Mapping[bytes, Claims]) -> dict[str, int]:
    """What becomes of each record before a target key is decided: together they are all records."""
    places = Counter(key for _partition, key in source.versions)
    owners = Counter(owner(key) for key in places)
    unowned, claimed = owners[None], sum(map(len, claims.values()))
    counts = {
        "older": source.records - len(places),
        "unowned": unowned,
        "not_selected": len(places) - unowned - claimed,
        "superseded": claimed - len(claims),
        "keys": len(claims),
    }
    assert sum(counts.values()) == source.records
    assert all(counts.values()), "a case is missing"
    return {**counts, "records": source.records, "scattered": sum(count > 1 for count in places.values())}


def target_of(cluster: Cluster, writer: Writer, source: Log, policy: Policy) -> Log:
    """A target that has a third of the keys already: some older than the source's, some newer, equal or deleted."""
    log = Log(f"{cluster.name}-{policy}")
    cluster.create(log.topic)
    finals = sorted({final[0] for key in source.newest() if (final := renamed(key)) is not None})
    some = [key for number, key in enumerate(finals) if number % 3 == 0]
    now_ms, writer.now_ms = writer.now_ms, START_MS + source.records // 2  # in the middle of the source's times
    writer.write(log, some)
    writer.now_ms = now_ms + len(some)
    return log


def test_the_target_is_what_plain_python_computes(
    cluster: Cluster, engine: Engine, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    big = request.config.getoption("--big")
    cluster.create(cluster.name)
    with written(cluster, 200_000 if big else 10_000) as (source, writer):
        for policy in Policy:
            target = target_of(cluster, writer, source, policy)
            expected, wanted_summary = computed(source, target, policy)
            wanted = MigrationRequest(
                target=target.topic,
                selection=Selection(pattern="c*"),
                renames=RENAMES,
                policy=policy,
                allow_open_transactions=True,
            )
            applied = policy in (Policy.NEWEST, Policy.TAKE_SOURCE) or (big and policy is Policy.KEEP_TARGET)
            summary = _migrated(cluster, engine, tmp_path, wanted, applied=applied)
            assert {name: summary[name] for name in wanted_summary} == wanted_summary, policy
            assert cluster.per_partition(target.topic) == (expected if applied else target.content()), policy
            assert all(summary["counts"][action] for action in _expected_actions(policy)), "a case is missing"


def _expected_actions(policy: Policy) -> tuple[str, ...]:
    if policy is Policy.FAIL:
        return ("write", "keep", "conflict")
    return ("write", "keep") if policy is Policy.KEEP_TARGET else ("write", "delete", "keep")


def _migrated(
    cluster: Cluster, engine: Engine, folder: Path, wanted: MigrationRequest, *, applied: bool
) -> Mapping[str, Any]:
    """Plans, and applies that if it is to be `applied`."""
    allowances = with_other(DOWN, allow_open_transactions=True)
    with prepared_migration(app(cluster, folder), wanted, engine, allowances=allowances) as prepared:
        assert (prepared.apply is None) is (wanted.policy is Policy.FAIL)
        if not applied or prepared.apply is None:
            return plain(prepared.report().summary)  # type: ignore[no-any-return]
        result = prepared.apply()
    assert (result.exit_code, result.problems) == (ExitCode.OK, ())
    counts = prepared.report().summary_of(MigrationSummary).counts
    assert result.summary.sent == counts.write + counts.delete
    assert result.summary.verified == result.summary.keys
    return plain(result.summary)  # type: ignore[no-any-return]
