"""The plugins in folders of this machine, judged by a version of Kafka. Reads files only, and asks no worker."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.findings import WARNING, Finding, severity_counts, worst_first
from eosctl.core.versions import kafka_version
from eosctl.deadline import Deadline, Event, OnEvent
from eosctl.errors import InputFileError, UsageError
from eosctl.output.rows import finding_row, unseen_parts
from eosctl.plugins import codes
from eosctl.plugins.archives import path_text, plugin_paths, read_plugin
from eosctl.plugins.kafka_classes import known_classes
from eosctl.plugins.rows import UPGRADE_PLUGINS, PlannedPlugins, PluginPart, PluginsData, PluginsSummary
from eosctl.plugins.rules import InstalledPlugin, find_two_versions, installed_plugins, judge_plugin
from eosctl.report import Report, check_exit_code

_NUMBERED = re.compile(r"\d+\.\d", re.ASCII)


class PluginsSeen(Struct, frozen=True):
    """The plugins of folders, and the findings about them, the worst first; `kafka` is the version that was named.

    `release` is the release whose classes they were judged by, None where the table has none of that version.
    """

    kafka: str
    release: str | None
    folders: tuple[str, ...]
    installed: tuple[InstalledPlugin, ...]
    findings: tuple[Finding, ...]

    @property
    def sentence(self) -> str:
        """The folders and the classes that were looked at, where nothing was found."""
        classes = len({each.name for each in self.installed})
        by = "" if self.release is None or self.release == self.kafka else f" (judged by {self.release})"
        where = ", ".join(self.folders)
        return (
            f"{classes:,} plugin classes in {where}: none was seen to lead to a name that Kafka {self.kafka}{by} lacks"
        )


def look_at_plugins(
    folders: Sequence[Path], kafka: str, on_event: OnEvent, *, deadline: Deadline | None = None
) -> PluginsSeen:
    """Read the plugins of plugin.path entries and judge them; those for which no time is left are not judged.

    What can't be read is a finding.
    """
    table, version = known_classes(), kafka_version(kafka)
    release = None if version is None else table.release_of(version)
    findings, installed = list[Finding](), list[InstalledPlugin]()
    if release is None:
        covered = f"this eosctl has the classes of Kafka {table.range} only"
        findings.append(_not_judged(f"Kafka {kafka}", f"{covered}: whether a plugin fits is not known", kafka))
    paths = list(_paths(folders, findings, kafka))
    for number, path in enumerate(paths):
        if deadline is not None and deadline.expired():
            more = f"{path_text(path)} and {len(paths) - number - 1} more were not read: no time was left"
            findings.append(_not_judged(path_text(path), more, kafka))
            break
        on_event(Event("reading plugins", number, len(paths), "plugins"))
        plugin = read_plugin(path)
        installed += installed_plugins(plugin, table, release or table.releases[-1])
        if release is not None:
            findings += judge_plugin(plugin, table, release, kafka)
    findings += find_two_versions(installed)
    return PluginsSeen(kafka, release, tuple(map(path_text, folders)), tuple(installed), tuple(worst_first(findings)))


def _paths(folders: Sequence[Path], findings: list[Finding], kafka: str) -> Iterator[Path]:
    for folder in folders:
        try:
            yield from plugin_paths(folder)
        except OSError as exc:
            findings.append(_not_judged(path_text(folder), f"{path_text(folder)} can't be read: {exc.strerror}", kafka))


def _not_judged(subject: str, message: str, kafka: str) -> Finding:
    return Finding(
        codes.PLUGIN_NOT_JUDGED,
        WARNING,
        subject,
        message,
        codes.PLUGIN_NOT_JUDGED.next,
        {"kafka": kafka},
        certain=False,
    )


class NamedPlugins(Struct, frozen=True):
    """The folders and the version of Kafka that a command names."""

    folders: tuple[Path, ...]
    kafka: str

    def look(self, on_event: OnEvent) -> PluginsSeen:
        """Read and judge the plugins; that there is none is a finding, as folders that were named have some.

        Raises UsageError for a version that is none, InputFileError for a folder that is not there.
        """
        if _NUMBERED.match(self.kafka) is None:
            raise UsageError(f"{self.kafka} is no version of Kafka", hint="Give one such as 4.4.0.")
        for folder in self.folders:
            if not folder.exists():
                raise InputFileError(f"there is no {folder}", hint="Name the folder as in plugin.path.")
        seen = look_at_plugins(self.folders, self.kafka, on_event)
        if seen.installed:
            return seen
        none = f"no plugin was found in {', '.join(seen.folders)}: name the parent folder of the plugins"
        return replace(seen, findings=(*seen.findings, _not_judged(seen.folders[0], none, self.kafka)))


def check_plugins(app: App, named: NamedPlugins) -> Report:
    """Report whether plugins fit a version of Kafka: exit 3 on an error, else 7 where something is not known."""
    seen = named.look(app.on_event)
    unseen = unseen_parts(seen.findings)
    return Report(
        kind=UPGRADE_PLUGINS,
        rows=[finding_row(each) for each in seen.findings],
        summary=PluginsSummary(
            plugins=len({each.name for each in seen.installed}),
            findings=len(seen.findings),
            unseen=len(unseen),
            counts=severity_counts(seen.findings),
        ),
        data=PluginsData(
            kafka=seen.kafka,
            release=seen.release,
            folders=list(seen.folders),
            plugins=_plugin_parts(seen),
            unseen=unseen,
        ),
        exit_code=check_exit_code(seen.findings, strict=False),
    )


def planned_plugins(seen: PluginsSeen) -> PlannedPlugins:
    """Return the plugins and their findings as the plan of an upgrade has them."""
    return PlannedPlugins(
        kafka=seen.kafka,
        release=seen.release,
        folders=list(seen.folders),
        plugins=_plugin_parts(seen),
        findings=[finding_row(each) for each in seen.findings],
    )


def _plugin_parts(seen: PluginsSeen) -> list[PluginPart]:
    return [PluginPart(name=each.name, version=each.version, path=each.path) for each in seen.installed]
