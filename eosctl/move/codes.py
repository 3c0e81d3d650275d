"""The codes of moves between Connect groups."""

from __future__ import annotations

from eosctl.codes import error, warning

MOVE_UNFINISHED = error(
    "move_unfinished",
    "A move of a connector to another Connect group is not finished.",
    "Run it again to go on (--resume); the hint also has the way back.",
)
MOVE_UNPROVEN = error(
    "move_unproven",
    "The connector has moved, and the audit of one of its two sides could not prove that it was exactly-once.",
    "The message says why. `eosctl audit --connector NAME` on that side looks again when it has committed more.",
)
MOVE_NOT_EXACTLY_ONCE = error(
    "move_not_exactly_once",
    "The connector has moved, and the audit of one of its two sides found records that are not exactly-once.",
    "`eosctl audit --connector NAME` on that side shows which.",
)
RUNS_ON_BOTH = error(
    "runs_on_both",
    "The connector was started on the side that it had left, while it ran on the other.",
    "The message says which side was stopped. Stop the other one, too, then look at both: `eosctl audit`.",
)
AT_LEAST_ONCE = warning(
    "at_least_once",
    "The workers of a side are not enabled for exactly-once: a record that was written and whose offset was not yet "
    "committed is written again.",
    "To move it exactly-once, enable both groups first: `eosctl upgrade plan --to enabled`.",
)
PLUGIN_DIFFERS = warning(
    "plugin_differs",
    "The connector's plugin has another version there, or none that is known: it may read its offsets in another way.",
    "Read the plugin's release notes, or install the same version there.",
)
TOPICS_NOT_THERE = warning(
    "topics_not_there",
    "Topics that the connector writes to do not exist on the other Kafka cluster.",
    "Create them there as they are here, unless Connect or the brokers are to create them.",
)
TOPICS_NOT_KNOWN = warning(
    "topics_not_known",
    "Which topics the connector writes to is not known.",
    "See whether the topics that it will write to exist there.",
)
MODE_NOT_KNOWN = warning(
    "mode_not_known",
    "Whether the workers of a side are enabled for exactly-once is not known.",
    "`eosctl workers probe` asks each worker.",
)
LEFT_THERE = warning(
    "left_there",
    "The connector was not deleted on the side that it left.",
    "Look at it, and delete it there by Connect's REST interface if it is not wanted.",
)
