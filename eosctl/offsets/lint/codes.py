"""The codes of findings about lost offsets."""

from __future__ import annotations

from eosctl.codes import finding

OFFSETS_HIDDEN = finding(
    "offsets_hidden",
    "A connector has an offsets topic of its own, and some of its offsets are in the global topic only; or its "
    "config names none any more, and they are in the one that it named before. Tasks that start do not see these, "
    "and read that part of their source from the beginning.",
    "Before any restart: `eosctl connectors stop`, `eosctl offsets merge --into dedicated` (or global), "
    "`eosctl connectors resume`.",
)
OFFSETS_TOPIC_EMPTY = finding(
    "offsets_topic_empty",
    "A connector's own offsets topic never had a record, though the global topic has offsets of it: it was deleted "
    "and made anew by a worker, or never filled.",
    "Before any restart: `eosctl connectors stop`, `eosctl offsets merge --into dedicated`, `eosctl connectors "
    "resume`.",
)
OFFSETS_DELETED = finding(
    "offsets_deleted",
    "A source connector's tasks have committed before, it has no offset anywhere, not even a deleted one, and records "
    "were deleted from the start of its offsets topic: its next start reads the source from the beginning. A warning "
    "where its task-count record alone shows that its tasks ran.",
    "Do not resume or restart it before `eosctl offsets restore` or `import` has put its offsets back. If somebody "
    "reset them long ago: `eosctl doctor --ignore offsets_deleted:NAME`.",
)
OFFSETS_WENT_BACK = finding(
    "offsets_went_back",
    "An offset lies before a former one that the log still has, with no deletion (reset) in between: the source is "
    "read again from there. Reported for FileStream, JDBC, MirrorMaker 2 and Debezium if their order is certain "
    "(GTIDs: of the same servers or domains), and not for offsets that an `eosctl offsets` command of this machine "
    "wrote. A PATCH of /connectors/NAME/offsets can't be distinguished from an accident.",
    "Before any restart: `eosctl connectors stop`, `eosctl offsets set --as-of`, `eosctl connectors resume`; "
    "`eosctl offsets log` shows every version. If it was meant: `eosctl doctor --ignore offsets_went_back:NAME`.",
)
