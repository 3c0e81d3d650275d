"""The codes of problems with offsets, of warnings of writes, files and switches, and of findings about lost offsets.

Problems are of offsets that are listed, compared and written. Warnings are those of `offsets set` and `offsets reset`,
of files of offsets, and of a switch between offsets topics.
"""

from __future__ import annotations

from eosctl.codes import error, finding, warning

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


GOES_FORWARD = warning(
    "goes_forward",
    "An offset is set further on: what the source has in between is not read.",
    "Leave it, unless those records are not wanted.",
)
ORDER_UNKNOWN = warning(
    "order_unknown",
    "An offset can't be compared with the one before it: what the source has in between may not be read.",
    "Compare the members that are named with what the source has; `docs/offset-kinds.md` lists what can be compared.",
)
SOURCE_KEEPS = warning(
    "source_keeps",
    "The source of a well-known connector delivers only what it still has, whatever the offset says.",
    "Look there whether it still has the records; Debezium's signal table asks for rows again.",
)
CONFIG_NOT_VALID = error(
    "config_not_valid",
    "A worker would not take the config: Connect or the connector itself objects to it.",
    "Correct what is named. The connector's own checks may ask its source: see whether that can be reached.",
)
CONFIG_NOT_VALIDATED = warning(
    "config_not_validated",
    "No worker could validate the config.",
    "Give the URL of a worker (-u) that has the connector's plugin.",
)
STARTS_OVER = error(
    "starts_over",
    "A connector's config names source partitions that have no offset: there it reads from the beginning, or takes a "
    "snapshot, by its own settings.",
    "Keep the property that names them as it was, or give them offsets before it starts (`eosctl offsets set`).",
)
NEW_KEY = warning(
    "new_key",
    "No record has this source partition: its key had to be made up.",
    "Be sure that the connector spells it the same.",
)
SEVERAL_SPELLINGS = warning(
    "several_spellings", "A source partition has keys in several spellings; all that have a value are written."
)


ABSENT_BEFORE = warning(
    "absent_before", "Keys that had no record before get a tombstone, which Connect reads as no offset."
)
DELETES = warning("deletes", "The file holds deletions, and they will be written.")
NO_KEY = warning("no_key", "Records without a key are not imported, as a compacted topic takes none.")
OVER_NEWER = warning("over_newer", "Values that are newer than the file's are overwritten.")
SUPERSEDED = warning("superseded", "Of several records for one key the newer counts; the others are not imported.")
UNCHECKED = warning("unchecked", "The file does not have what was written, so that a later write would go unnoticed.")
SECRETS_HIDDEN = warning(
    "secrets_hidden",
    "Values that may be secrets are not written or printed: *** stands in their place, or the patch is left out.",
    "Where it must be exact: --with-secrets, and keep it safe.",
)
NULL_PARTITION = warning(
    "null_partition", "Offsets with a null source partition can't be part of a REST body.", "--format ndjson."
)
NOT_AN_OFFSET = warning("not_an_offset", "Values that are no offsets can't be part of a REST body.", "--format ndjson.")
OTHER_SPELLING = warning("other_spelling", "Older spellings of a key can't be part of a REST body.", "--format ndjson.")


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
    "and recreated by a worker, or never filled.",
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
SOURCE_PARTITIONS_CHANGED = finding(
    "source_partitions_changed",
    "Since a change of its config a connector has none of the source partitions that it had before, and their offsets "
    "are left behind. Where the others had no offset, it started over: it reads from the beginning, or takes a "
    "snapshot. Of a connector whose class is not known, this is only seen by what it has committed, and is a note "
    "unless the changed values are in its source partitions. `connectors apply` reports it of its own change as "
    "`all_partitions_new`.",
    "If it was not meant: stop it, change the property back, or give the new source partitions the offsets of the old "
    "ones (`eosctl offsets set`). If it was: `eosctl offsets reset` of the old ones.",
)


SNAPSHOT_UNREAD = warning(
    "snapshot_unread",
    "A file of a snapshot can't be read, or is not whole: versions in it are not shown.",
    "Take a whole copy of it, or remove it.",
)
SNAPSHOT_INCOMPLETE = warning(
    "snapshot_incomplete",
    "A snapshot lacks a topic, or what lies behind an open transaction.",
    "Mend what the message names; the next snapshot has it.",
)
SNAPSHOT_WITHOUT_OFFSET = warning(
    "snapshot_without_offset",
    "A snapshot has no offset of a connector that was named: it has none yet, or its name is spelled otherwise.",
    "Compare the name with `eosctl offsets list`.",
)
SNAPSHOT_NOT_REMOVED = warning(
    "snapshot_not_removed",
    "An old file of a snapshot could not be removed.",
    "Remove it, or check the folder's rights.",
)
