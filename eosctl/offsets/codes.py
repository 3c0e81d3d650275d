"""The codes of problems with offsets that are listed, compared and written."""

from __future__ import annotations

from eosctl.codes import error, warning

NOT_AS_PLANNED = error(
    "not_as_planned",
    "Read back, some offsets are not as planned.",
    "Take the write back with the undo command that is printed.",
)
ABORTED_BUT_VISIBLE = warning(
    "aborted_but_visible",
    "Aborted records are in the topic, which workers that are not enabled still read.",
    "Run the same command again before such a worker starts.",
)
ANSWER_LOST = warning("answer_lost", "The write was reported as failed, and all of it is there.")
CONFLICTS = error(
    "conflicts",
    "Both sides have a value, and --conflict fail decides none.",
    "Plan again with --conflict keep-target, take-source or newest.",
)
REST_DIFFERS = warning(
    "rest_differs",
    "A worker's REST answer differs from the topic, or looks under another spelling of the key.",
    "Write with --via topic.",
)
SOURCE_NOT_CHECKED = warning(
    "source_not_checked",
    "The source is on another cluster, and there is no worker to ask whether the connectors still run there.",
    "Stop them there first; add connect_url to the profile.",
)
SPLIT = warning(
    "split",
    "The offsets are too many for one transaction; they go in several.",
    "If it breaks off, run the same command again.",
)
STALE_COPIES = warning(
    "stale_copies",
    "Older copies of keys that are written lie on other partitions, and get tombstones.",
    "Restart no worker until compaction has removed the tombstones, or look at its offsets afterwards.",
)
WRITE_CUT_OFF = warning(
    "write_cut_off",
    "An earlier write was cut off.",
    "Run the same command again, or take it back with the undo command.",
)
CONNECTOR_GONE = warning(
    "connector_gone",
    "Offsets of a connector that no longer exists: one that is created with its name goes on from them.",
    "For a new beginning `eosctl offsets reset --connector NAME --all-partitions` before it is created.",
)
IGNORED_KEYS = warning(
    "ignored_keys",
    "Keys that no connector ever finds are written as they are.",
    "`eosctl offsets lint` says what is wrong with them.",
)
