"""The codes of problems with a connector that is created, or whose config is changed."""

from __future__ import annotations

from eosctl.codes import error, warning

STARTS_AT_BEGINNING = warning(
    "starts_at_beginning",
    "The connector has no offsets: it starts where its own settings say, mostly at the beginning of its source.",
    "Give it offsets with --offsets FILE or CONNECTOR, if it is to go on from somewhere.",
)
GOES_ON_FROM_LEFT = warning(
    "goes_on_from_left",
    "Offsets of this name are there, as a deleted connector left them: the new one goes on from them.",
    "For a new beginning `eosctl offsets reset --connector NAME --all-partitions` first.",
)
START_NOT_KNOWN = warning(
    "start_not_known",
    "The connector keeps its offsets on Kafka brokers of its own: whether there are some to go on from is not known.",
    "`eosctl offsets list` with a profile that leads there shows them.",
)
OTHER_OFFSETS_IN_GLOBAL = warning(
    "other_offsets_in_global",
    "The global offsets topic has offsets of this name, which the connector, with a topic of its own, won't read.",
    "`eosctl offsets reset` removes them, if nobody needs them.",
)
READS_TWICE = warning(
    "reads_twice",
    "A running connector has source partitions of the same names.",
    "If it is the same source, stop one of them: each record would be delivered twice.",
)
IDS_CLASH = warning(
    "ids_clash",
    "A task of another Connect group can have the same transactional id: each would fence the other.",
    "Choose another name for the connector.",
)
WORKER_LACKS_PLUGIN = warning(
    "worker_lacks_plugin",
    "A worker of the group does not have the connector's plugin: what it is given of the connector fails.",
    "Install the plugin on all workers.",
)
WORKERS_NOT_ASKED = warning(
    "workers_not_asked",
    "Not every worker of the group could be asked for its version and its plugins.",
    "Name the workers with -u, or --connect-map where they are reached at other addresses.",
)
KEPT_BY_OPERATOR = warning(
    "kept_by_operator",
    "The file is a KafkaConnector: where Strimzi's operator keeps the connectors of a group, it undoes what others do.",
    "Apply the resource there, too, in state stopped until the offsets are in place; or let only one of both do it.",
)
GIVEN_AFTER_RESET = warning(
    "given_after_reset",
    "The connector whose offsets are given has deleted some in its own topic, and has them in the global one: as Kafka "
    "documents it, these count, and no release reads them.",
    "If they were reset on purpose, give a file without them: `eosctl offsets export --store TOPIC`.",
)
FORMER_TASKS_NOT_FENCED = warning(
    "former_tasks_not_fenced",
    "The tasks of a deleted connector of that name could not be fenced: one that is still alive may commit offsets "
    "until Connect itself fences it, when the new connector starts.",
    "Grant DESCRIBE and WRITE on the transactional ids of the connector.",
)
SPELLING_GUESSED = warning(
    "spelling_guessed",
    "A body has no bytes of keys: source partitions of several members are written as Connect's REST interface spells "
    "them, and a connector that spells them in another order does not find them.",
    "Give the offsets as a record file (`eosctl offsets export`), or those of the connector that had them.",
)
NOT_WATCHED = warning(
    "not_watched",
    "The connector does not run: whether it goes on from its offsets with the new config shows only when it does.",
    "Resume it, and look at what it commits: `eosctl offsets list --connector NAME`.",
)
STATE_STAYS = warning(
    "state_stays",
    "The file says another state than the connector has; only its config is changed.",
    "`eosctl connectors stop`, `pause` or `resume`.",
)
ALL_PARTITIONS_NEW = error(
    "all_partitions_new",
    "Since it was started, or its config was changed, the connector has committed offsets of new source partitions "
    "only, as one that starts over. `doctor` reports it of any change as `source_partitions_changed`.",
    "Stop it, put the former config back, and see `eosctl connectors diff` for what names source partitions.",
)
SOME_PARTITIONS_NEW = warning(
    "some_partitions_new",
    "Since it was started, or its config was changed, the connector has committed offsets of source partitions that it "
    "had none of.",
    "Where these are the same tables or files under other names, it started over there.",
)
PARTITIONS_NOT_SEEN = error(
    "partitions_not_seen",
    "Whether the connector goes on from its offsets is not known: since its config was changed it has committed none.",
    "Look again with `eosctl offsets list --connector NAME` when it has read something.",
)
CREATE_UNFINISHED = error(
    "create_unfinished",
    "The connector is not as it is to be yet.",
    "Run the same command again: it goes on.",
)
NOT_CREATED_STOPPED = error(
    "not_created_stopped",
    "A worker created the connector running, although it was to be STOPPED: it was stopped at once.",
    "Look at what it has delivered, delete it, and run again when all workers are of Kafka 3.7 or newer.",
)
COMMITS_NOT_SEEN = warning(
    "commits_not_seen",
    "Whether the tasks commit was not looked at, as eosctl can't connect to the Kafka brokers that the config names.",
    "`eosctl offsets list` with a profile that leads there shows how old the offsets are.",
)
