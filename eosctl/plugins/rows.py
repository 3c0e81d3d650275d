"""What is printed of plugins: the report of `upgrade plan --plugins` without a mode, and their part of a plan."""

from __future__ import annotations

from typing import Annotated

from eosctl.output.cells import TOTAL
from eosctl.output.rows import Counts, FindingRow, Kind, Printed, UnseenParts
from eosctl.output.text import findings_text


class PluginPart(Printed):
    """A class that Connect can run."""

    name: Annotated[str, "The class."]
    version: Annotated[str | None, "The version of its jar; null where the jar does not say it."]
    path: Annotated[str, "The jar."]


class PluginsPart(Printed):
    """The plugins in folders, beside a version of Kafka."""

    kafka: Annotated[str, "The version that was named."]
    release: Annotated[
        str | None, "The release whose classes stand for that version; null where eosctl has none of it."
    ]
    folders: Annotated[list[str], "The folders, as in plugin.path."]
    plugins: Annotated[list[PluginPart], "The connectors, tasks, converters and transformations in them."]


class PlannedPlugins(PluginsPart, kw_only=True):
    """The plugins that a plan of an upgrade looked at."""

    findings: Annotated[list[FindingRow], "What was found, worst first."]


class PluginsSummary(Printed):
    """The number of plugins and of findings."""

    plugins: Annotated[int, "How many classes Connect can run.", TOTAL]
    findings: Annotated[int, "How many findings there are."]
    unseen: Annotated[int, "How much could not be seen."]
    counts: Annotated[Counts, "How many findings have each severity."]


class PluginsData(PluginsPart, kw_only=True):
    """The plugins, and what could not be seen of them."""

    unseen: UnseenParts


UPGRADE_PLUGINS = Kind(
    "upgrade-plugins",
    "What keeps plugins from running on a version of Kafka.",
    row=FindingRow,
    summary=PluginsSummary,
    data=PluginsData,
    text=findings_text("No plugin was seen to name a class or method that this Kafka lacks."),
)
