"""The codes of warnings about a switch between offsets topics."""

from __future__ import annotations

from eosctl.codes import error, finding, warning

SWITCH_UNFINISHED = error(
    "switch_unfinished",
    "A switch between offsets topics is not finished.",
    "Run it again to go on; the hint also has the way back.",
)
SWITCH_BEGUN_ELSEWHERE = finding(
    "switch_begun_elsewhere",
    "A connector was stopped and not started since; meanwhile it got another offsets topic, or its offsets were "
    "copied to one that its config does not name; and no journal here has the reason.",
    "See whether the new topic has all offsets (the fix has the command), then resume it, or go back.",
)
RIGHTS_UNKNOWN = warning(
    "rights_unknown",
    "Whether the connector may use its new offsets topic could not be checked: ACLs or principals are not known.",
    "Name the worker's file with -w, or compare with `eosctl acls generate`.",
)
RIGHTS_UNSURE = warning(
    "rights_unsure",
    "An ACL on the connector's new offsets topic seems to be lacking; a super user needs none.",
    "The hint has the kafka-acls line.",
)
REST_FINDS_OTHER_KEYS = warning(
    "rest_finds_other_keys",
    "REST shows null where the task finds an offset: its keys are spelled in another order.",
)
NOTHING_COMMITTED_YET = warning(
    "nothing_committed_yet",
    "The tasks are RUNNING and have committed nothing since they were started: the source is idle, or they can't "
    "get at it.",
    "If the source is not idle, see the worker's log.",
)
ONLY_IN_TARGET = warning("only_in_target", "The target has offsets that the source lacks; they will count.")
