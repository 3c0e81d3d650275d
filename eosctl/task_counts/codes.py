"""The findings about task-count records, and the warnings of writing them."""

from __future__ import annotations

from eosctl.codes import error, finding, warning
from eosctl.core.allowances import Waiver

MISSING = finding(
    "missing",
    "There is no task-count record: the next start fences no id.",
    "Nothing, if the group does not run exactly-once; else stop and resume the connector: the leader writes it.",
)
TOO_LOW = finding(
    "too_low",
    "Ids beyond the recorded count are alive: a fencing round would miss them.",
    "Stop the connector, `eosctl fence --connector NAME --tasks N`, resume it.",
)
MIS_ORDERED = finding(
    "mis_ordered",
    "The record is older than the newest task commit: fencing is due, under way, or failing.",
    "Look again in a minute; then see the tasks' traces, and `eosctl rescue`.",
)
INCOMPLETE_TASK_SET = finding(
    "incomplete_task_set",
    "The newest commit names tasks whose configs are not in the topic: no task runs.",
    "Change the connector's config, so that it writes them again.",
)
TASKS_FORGOTTEN = finding(
    "tasks_forgotten",
    "The connector's config is younger than the commit of its tasks: new workers (3.8+) hold no task of it.",
    "Stop and resume the connector, so that it writes its tasks again.",
)
IMPLAUSIBLE = finding(
    "implausible",
    "The record names a number of tasks that no connector has.",
    "Stop the connector, fence its ids, write the true count "
    f"(`eosctl task-counts write {Waiver.NO_FENCE}`), resume it.",
)
ORPHAN = finding("orphan", "The record of a deleted connector; Connect keeps it, to fence old tasks if it comes back.")
TOMBSTONED = finding(
    "tombstoned",
    "A deleted task-count record: running workers keep the old one, restarted ones forget it.",
    "Stop and resume the connector: the leader writes it anew.",
)
ID_COLLISION = finding(
    "id_collision",
    "A transactional id of this connector is also another group's: the two fence each other.",
    "Rename the connector, or the group.",
)
ABORTED_RECORDS_MATTER = warning(
    "aborted_records_matter",
    "The config topic holds aborted records that preparing and disabled workers would take.",
    "Overwrite them before any worker's mode changes.",
)
ALIVE_IDS_UNKNOWN = warning(
    "alive_ids_unknown",
    "The coordinators could not be asked which transactional ids they know.",
    "Grant DESCRIBE on the group's TransactionalIds.",
)
CONNECT_CAN = warning(
    "connect_can",
    "Connect's own leader would do the same.",
    "Let it: `eosctl fence --connector NAME --via connect`.",
)
GROUP_UNKNOWN = warning(
    "group_unknown", "It is unknown whether the Connect group exists.", "Grant DESCRIBE on the group."
)
GROUP_WITHOUT_MEMBERS = warning(
    "group_without_members",
    "The group that was named has no members: it may be another one's name.",
    "Compare -g with the workers' group.id.",
)
NOT_FENCED = warning(
    "not_fenced",
    f"The recorded ids stay as they are ({Waiver.NO_FENCE}).",
    "`eosctl fence --connector NAME --tasks N`.",
)
NOT_WRITTEN = error(
    "not_written",
    "Not every recorded id could be fenced, so the task-count record was not written.",
    "Read why above it, and run again.",
)
RECORD_DIFFERS = error(
    "record_differs",
    "Something else was written to the config topic at the same moment as the task-count record.",
    "See what there is now: `eosctl task-counts show NAME`. Stop and resume the connector: the leader then writes a "
    "record of its own.",
)
OTHER_CONNECTORS = warning(
    "other_connectors",
    "Topic and worker know different connectors: the topic may be another group's.",
    "Name the group's config.storage.topic with --config-topic.",
)
RESTART_NO_WORKER = warning(
    "restart_no_worker",
    "The config topic has a record that a worker which starts can't read, and loses others with.",
    "Restart no worker until `eosctl task-counts clean` has ended.",
)
CLEAN_UNFINISHED = warning(
    "clean_unfinished",
    "A run of `task-counts clean` was cut off: the config topic still has the settings that it set meanwhile.",
    "Run `eosctl task-counts clean` again: it sets them back.",
)
SETTINGS_NOT_SET_BACK = error(
    "settings_not_set_back",
    "`task-counts clean` could not set the config topic's settings back.",
    "Run it again.",
)
WRONG_TYPE = finding(
    "wrong_type",
    "A task-count record or a task commit that is no integer. A worker that reads it when it starts loses the rest "
    "of the batch, and stays behind the config topic.",
    "Restart no worker until compaction has removed it: `eosctl task-counts clean`. Overwriting is not enough.",
)
KIP_TEXT_FIELD = finding(
    "kip_text_field",
    "A task-count record spelled as in KIP-618's text. A worker that reads it when it starts loses the rest of the "
    "batch, and stays behind the config topic.",
    "Restart no worker until compaction has removed it: `eosctl task-counts clean`. Overwriting is not enough.",
)
KIP_TEXT_KEY = finding(
    "kip_text_key",
    "A key spelled as in KIP-618's text, which workers do not read.",
    "Delete it; workers read tasks-fencing-CONNECTOR.",
)
UNPARSABLE = finding(
    "unparsable", "A task-count record that is not JSON.", "Stop and resume the connector: the leader writes it."
)
