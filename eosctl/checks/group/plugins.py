"""doctor's checks of plugins: those that workers list differently, and the jars in a worker's plugin.path.

The jars are read where the folders that a worker's file (-w) names are on this machine, and judged by the Kafka that
the workers report. Plugins of Kafka's own have the version of their worker, and say no more than that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from eosctl.app import App
from eosctl.core.configs.records import names_one_of
from eosctl.core.findings import INFO, WARNING, Finding
from eosctl.core.java.properties import is_reference, split_list
from eosctl.core.wording import counted
from eosctl.group.observed import GroupObservation, WorkerObservation
from eosctl.plugins import codes
from eosctl.plugins.look import look_at_plugins

PLUGIN_PATH = "plugin.path"
_OF_KAFKA = "org.apache.kafka."
_MOST_NAMED, _MOST_LISTED = 3, 20


def differing_plugins(group: GroupObservation, configs: Collection[Mapping[str, str]]) -> Iterator[Finding]:
    """Yield a warning if members list different plugins, or different versions of one.

    A class that a connector uses and a member lacks is another finding, `plugin_missing`. A plugin that is listed
    without a version can't be loaded, or has none: it proves no difference.
    """
    listed = [each for each in group.members if each.member_id is not None and each.plugins]
    names = sorted({name for each in listed for name in each.plugins or () if not name.startswith(_OF_KAFKA)})
    sentences, differing = list[str](), dict[str, Mapping[str, object]]()
    for name in names:
        by_worker = {each.name: sorted(each.plugins[name]) for each in listed if each.plugins and name in each.plugins}
        lacking = [] if any(names_one_of(each, [name]) for each in configs) else _without(listed, name)
        versions = defaultdict[str, list[str]](list)
        for worker, found in by_worker.items():
            if found:
                versions[" and ".join(found)].append(worker)
        if lacking or len(versions) > 1:
            parts = [f"{version} at {_named(workers)}" for version, workers in versions.items()]
            sentences.append(f"{name} is " + ", ".join([*parts, *([f"not at {_named(lacking)}"] if lacking else [])]))
            differing[name] = {**by_worker, **dict.fromkeys(lacking)}
    if sentences:
        more = [f"and {counted(len(sentences) - _MOST_NAMED, 'more plugin')}"] if sentences[_MOST_NAMED:] else []
        yield Finding(
            codes.PLUGINS_DIFFER, WARNING, str(group.group_id),
            f"workers of {group.group_id} list different plugins: {'; '.join([*sentences[:_MOST_NAMED], *more])}",
            codes.PLUGINS_DIFFER.next,
            {"plugins": {name: differing[name] for name in list(differing)[:_MOST_LISTED]}},
        )  # fmt: skip


def _without(listed: Collection[WorkerObservation], name: str) -> list[str]:
    return [each.name for each in listed if name not in (each.plugins or ())]


def _named(workers: Collection[str]) -> str:
    names = sorted(workers)
    more = len(names) - _MOST_NAMED
    return f"{', '.join(names[:_MOST_NAMED])}{f' and {more:,} more' if more > 0 else ''}"


def local_plugins(app: App, group: GroupObservation) -> Iterator[Finding]:
    """Yield the findings about the jars in the plugin.path of the workers' files, and what was not looked at.

    Half of the remaining time is for it at most, as a worker's plugins may have gigabytes.
    """
    folders = dict[Path, None]()
    for config in app.target.worker_configs:
        given = config.properties.values.get(PLUGIN_PATH, "")
        absent = list[str]()
        for entry in split_list(given):
            path = Path(entry)
            if path.is_absolute() and not is_reference(entry) and _is_there(path):
                folders[path] = None
            else:
                absent.append(entry)
        if absent:
            source = config.properties.source
            yield _not_seen(source, f"{source}: {', '.join(absent)} of {PLUGIN_PATH} is not on this machine")
    versions = sorted({each.version for each in group.members if each.version})
    if folders and not versions:
        yield _not_seen(PLUGIN_PATH, f"no worker reports its version: the plugins in {PLUGIN_PATH} were not judged")
    deadline = app.deadline.half()
    for version in versions if folders else ():
        yield from look_at_plugins(tuple(folders), version, app.on_event, deadline=deadline).findings


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


def _not_seen(subject: str, message: str) -> Finding:
    return Finding(codes.PLUGINS_NOT_SEEN, INFO, subject, message, codes.PLUGINS_NOT_SEEN.next)
