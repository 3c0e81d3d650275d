"""The codes of findings about Connect plugins: what their jars name, bundle, and have twice."""

from __future__ import annotations

from eosctl.codes import finding

PLUGIN_NOT_FOR_KAFKA = finding(
    "plugin_not_for_kafka",
    "The jars of a plugin name classes or methods that its Kafka lacks. What names them fails when that code runs: an "
    "error where a connector, task, converter or transformation leads to it, else a warning.",
    "Install the plugin's release for that Kafka; `eosctl rehearse --plugin-path DIR --kafka-version VERSION` shows "
    "whether it runs.",
)
PLUGIN_NOT_JUDGED = finding(
    "plugin_not_judged",
    "It is not known whether a plugin fits its Kafka: part of it could not be read, or it names classes of Kafka that "
    "the table of this eosctl does not have, or the table does not have that Kafka.",
    "See what the finding names; `eosctl rehearse --plugin-path DIR --kafka-version VERSION` shows whether it runs.",
)
PLUGIN_BUNDLES_KAFKA = finding(
    "plugin_bundles_kafka",
    "A jar of a plugin has classes that are Kafka's own. Connect takes those of the worker, and the jar's only where "
    "the worker has none: a mix of two releases.",
    "Take Kafka's jars out of the plugin's folder, or build the plugin without them (scope provided).",
)
PLUGIN_IN_TWO_VERSIONS = finding(
    "plugin_in_two_versions",
    "A plugin is there in two versions. Of two folders Connect takes the newer version, of two jars in a folder the "
    "one whose path comes first.",
    "Remove the one that is not meant.",
)
PLUGINS_DIFFER = finding(
    "plugins_differ",
    "Workers of the group list different plugins, or different versions of one: what a task does depends on where it "
    "runs.",
    "Install the same plugins on every worker, and restart those that differ.",
)
PLUGINS_NOT_SEEN = finding(
    "plugins_not_seen",
    "The folders of plugin.path in a worker's file are not on this machine: the worker's plugins were not looked at.",
    "Run `eosctl doctor -w FILE` on the worker's machine, or `eosctl upgrade plan --plugins DIR --kafka VERSION` with "
    "a copy of the folders.",
)
