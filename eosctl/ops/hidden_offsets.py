"""What a comparison of offsets says of keys that an open transaction hides: nothing, and that it says nothing."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from eosctl.core.migration import PlannedTopic
from eosctl.core.migration_results import Mismatch
from eosctl.core.offset_records import OffsetKey, decode_key
from eosctl.core.offset_views import DiffStatus
from eosctl.errors import ExitCode
from eosctl.ops.app import App
from eosctl.ops.migrate_topics import app_of
from eosctl.report import Problem

HIDDEN = DiffStatus.HIDDEN.value
"""The status of such a key in every comparison."""


def comparison_exit_code(*, differing: bool, hidden: bool, strict: bool) -> ExitCode:
    """3 for keys that differ; 7, or 3 where it is to be `strict`, where some could not be compared."""
    if differing or (hidden and strict):
        return ExitCode.FINDINGS
    return ExitCode.PARTIAL if hidden else ExitCode.OK


def hidden_problem(hidden: int, compared: int, *, where: str = "") -> Problem:
    """Says of how many keys nothing is said; `where` begins with a space."""
    message = f"{hidden} of {compared} keys{where} can't be compared: an open transaction hides newer records of them"
    return Problem("open_transaction", message, hint="`eosctl txn hanging` tells whose it is; run again when it ended.")


def hidden_offsets(
    app: App, topics: Sequence[PlannedTopic], connectors: Collection[str], *, side: str
) -> tuple[Mismatch, ...]:
    """The keys of `connectors` that open transactions hide in `topics`, as they are now, by topic and key."""
    found: dict[tuple[str, bytes], Mismatch] = {}
    for topic in topics:
        held_back = set(topic.has_open_transaction())
        if topic.file is not None or not held_back:
            continue
        with app_of(app, topic).topics() as store:
            behind = store.read_behind(topic.topic, [one for one in topic.bounds if one.partition in held_back])
        for record in behind:
            key = decode_key(record.key)
            if isinstance(key, OffsetKey) and key.connector in connectors:
                found[topic.name, key.raw] = Mismatch(
                    side, HIDDEN, key.connector, topic.name, record.partition, key.raw, None, None
                )
    return tuple(hidden for _place, hidden in sorted(found.items()))
