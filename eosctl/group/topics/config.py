"""The group's config topic, and the records that an open transaction hides in it. Reads only."""

from __future__ import annotations

from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.configs.fold import fold_config_topic
from eosctl.core.open_transactions import OPEN_TRANSACTION
from eosctl.core.records import TopicRead
from eosctl.core.wording import counted
from eosctl.errors import NotFoundError
from eosctl.group.absent import require_ever_there
from eosctl.group.topics.config_reader import ConfigTopic, find_config_topic
from eosctl.ports import TopicReader
from eosctl.report import Problem


def read_config_topic(app: App, store: TopicReader, *, isolation: str = "read_committed") -> ConfigTopic:
    """Read and fold the target's config topic; raise NotFoundError, or EosctlError if it can't be a config topic."""
    found = find_config_topic(app, store, isolation=isolation, strict=True)
    if found is None:
        require_ever_there(app)
        raise NotFoundError(
            f"there is no topic {app.target.config_topic}",
            hint="Name the worker's config.storage.topic with --config-topic, or give -w.",
        )
    return found


def read_both_views(app: App, store: TopicReader) -> tuple[ConfigTopic, ConfigTopic]:
    """Read the config topic as committed, and as a worker that takes aborted records sees it, up to the same offset.

    Both end where the first read ended: a record that came in between is neither aborted nor missing.
    Raises what `read_config_topic` raises.
    """
    committed = read_config_topic(app, store)
    ends = {bound.partition: bound.end for bound in committed.read.bounds}
    later = read_config_topic(app, store, isolation="read_uncommitted").read
    records = tuple(record for record in later.records if record.offset < ends[record.partition])
    return committed, replace(committed, read=replace(later, records=records), state=fold_config_topic(records))


def blocked_problems(read: TopicRead) -> list[Problem]:
    """Return a warning per partition where an open transaction hides later records."""
    return [
        Problem(
            OPEN_TRANSACTION,
            f"topic {read.topic}, partition {bound.partition}: a transaction is open since offset {bound.lso}; "
            f"{counted(bound.end - bound.lso, 'offset behind it is', 'offsets behind it are')} not visible",
            hint="If it stays open, workers hang on it too: see `eosctl txn hanging`.",
            unseen=True,
        ).as_warning()
        for bound in read.blocked()
    ]
