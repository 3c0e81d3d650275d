"""The codes of the problems of a Connect group and its workers."""

from __future__ import annotations

from eosctl.codes import error, finding, warning

WORKER_UNREACHABLE = error(
    "worker_unreachable",
    "A worker of the group does not answer.",
    "See whether it runs; -u or --connect-map ADVERTISED=REACHABLE says where it is reached from here.",
)
WORKER_NOT_A_MEMBER = error(
    "worker_not_a_member",
    "A worker runs and is not a member of its group: most often it does not reach the brokers. It was named, or the "
    "group's status topic names it, and it knows the group's connectors.",
    "See its log; check its network, DNS, bootstrap.servers and credentials. It joins again when it reaches the "
    "brokers.",
)
STANDALONE_WORKER = warning(
    "standalone_worker",
    "The worker is of no group: a standalone one, which does not know exactly-once.",
    "Give the URL of a distributed worker.",
)
PLUGIN_NOT_LOADED = warning(
    "plugin_not_loaded",
    "A worker can't load a connector plugin: a class that it needs is not there. Plugins that were built for Kafka "
    "before 4.4 need classes that 4.4 has moved (org.apache.kafka.common.utils); connectors of such a plugin fail.",
    "Install the plugin's release for the Kafka version of the worker, or take it out of plugin.path.",
)
FILE_CONTRADICTS_PROBE = warning(
    "file_contradicts_probe",
    "A worker behaves otherwise than its properties file says.",
    "Restart it with that file, or give the file that it reads.",
)
OTHER_KAFKA_CLUSTER = warning(
    "other_kafka_cluster", "A worker that was named uses another Kafka cluster.", "Compare -u and -b."
)
OTHER_GROUP = warning(
    "other_group", "A worker that was named is of another group.", "Compare -u, and -g with the worker's group.id."
)
OVERRIDE_REFUSED = finding(
    "override_refused",
    "The workers' connector.client.config.override.policy refuses overrides that a connector's config has: it does "
    "not start with them.",
    "Set them in the workers' files, or allow them there.",
)
OVERRIDE_IGNORED = finding("override_ignored", "A setting that has no effect on exactly-once tasks.", "Remove it.")
