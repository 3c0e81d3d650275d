"""Whether the plugins of a worker fit a release of Kafka, judged by the names in their class files. Pure.

A plugin's class loader has its own classes first, but for `java…` and `org.apache.kafka…`, which it takes from the
worker where the worker has them (`PluginUtils.shouldLoadInIsolation` of Kafka 4.3.1). So a class that Kafka lacks may
still be among the plugin's own, and the plugin's copy of one that Kafka has is never loaded.

Names are no runs: a class that is missing fails the code that uses it, when that runs. It is an error where a plugin's
class, or a class to which one leads by names, names it; else nothing is known to run it, and it is a warning.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from eosctl.core.findings import ERROR, WARNING, Finding
from eosctl.core.java.class_file import OBJECT, Member
from eosctl.core.wording import counted
from eosctl.plugins import codes
from eosctl.plugins.archives import Plugin, PluginClass
from eosctl.plugins.kafka_classes import KAFKA, KafkaClasses

_ISOLATED = re.compile(
    r"org/apache/kafka/(?:connect/(?:"
    r"transforms/(?!Transformation$|predicates/Predicate$).*|json/.*|file/.*|mirror/.*|mirror-client/.*|converters/.*"
    r"|storage/StringConverter|storage/SimpleHeaderConverter"
    r"|rest/basic/auth/extension/BasicAuthSecurityRestExtension"
    r"|connector/policy/(?!ConnectorClientConfig(?:OverridePolicy|Request(?:\$ClientType)?)$).*"
    r")|common/config/provider/(?!ConfigProvider$).*)"
)
"""Kafka's own classes that a plugin's class loader takes from the plugin first."""
_TYPES = frozenset(
    KAFKA + each
    for each in (
        *("connect/connector/Connector", "connect/source/SourceConnector", "connect/sink/SinkConnector"),
        *("connect/connector/Task", "connect/source/SourceTask", "connect/sink/SinkTask"),
        *("connect/storage/Converter", "connect/storage/HeaderConverter", "connect/json/JsonConverter"),
        *("connect/transforms/Transformation", "connect/transforms/predicates/Predicate"),
        *("connect/rest/ConnectRestExtension", "common/config/provider/ConfigProvider"),
        "connect/connector/policy/ConnectorClientConfigOverridePolicy",
    )
)
"""The classes of which Connect loads implementations out of plugins."""
_MOST_NAMED = 3
_MOST_LISTED = 20
_MOST_ANCESTORS = 500
"""No class has so many: where one does, its methods are not judged."""


class InstalledPlugin(Struct, frozen=True):
    """A class that Connect can run, and the version of its jar; `path` is that of the plugin and of its jar."""

    name: str
    version: str | None
    path: str


class MissingName(Struct, frozen=True):
    """A class or member of Kafka that a plugin names and that the release lacks.

    `named_by` is one of the plugin's classes, in `file`; `by` is how many name it. `path` leads there from a class that
    Connect runs; it is empty where none does. `is_parent`: the class that names it extends it.
    """

    name: str
    moved_to: str | None
    named_by: str
    file: str
    by: int
    path: tuple[str, ...]
    is_parent: bool


class _Classes(Struct, frozen=True):
    """The classes of a plugin beside those of a release of Kafka."""

    plugin: Plugin
    table: KafkaClasses
    release: str

    def is_own(self, name: str) -> bool:
        """Return whether the plugin's class loader takes the class from the plugin."""
        if name not in self.plugin.classes:
            return False
        return not name.startswith(KAFKA) or is_isolated(name) or self.table.has(name, self.release) is not True

    def live(self) -> Iterator[PluginClass]:
        """Yield the plugin's classes that can be loaded."""
        return (each for name, each in self.plugin.classes.items() if self.is_own(name))

    def ancestors(self, name: str) -> list[str]:
        """Return the class and what it inherits from, as far as the plugin's own classes show it."""
        found = [name]
        for each in found:
            if self.is_own(each) and len(found) <= _MOST_ANCESTORS:
                found += [parent for parent in self.plugin.classes[each].parents if parent not in found]
        return found

    def roots(self) -> list[str]:
        """Return the classes that Connect loads by themselves."""
        heirs = defaultdict[str, list[str]](list)
        for each in self.live():
            for parent in each.parents:
                heirs[parent].append(each.name)
        inheriting = dict.fromkeys(_TYPES)
        for name in (waiting := list(_TYPES)):
            new = [each for each in heirs.get(name, ()) if each not in inheriting]
            inheriting.update(dict.fromkeys(new))
            waiting += new
        listed = {name for service, names in self.plugin.services.items() if service in _TYPES for name in names}
        return sorted(
            each.name for each in self.live() if each.name in listed or (each.is_concrete and each.name in inheriting)
        )

    def missing(self, each: PluginClass) -> tuple[set[str], set[str]]:
        """Return the names of Kafka's that a class uses and the release lacks, and those of which it is not known."""
        lacking, unknown = set[str](), set[str]()
        for name in each.classes:
            if name.startswith(KAFKA) and not self.is_own(name):
                has = self.table.has(name, self.release)
                (lacking if has is False else unknown if has is None else set()).add(name)
        lacking |= {f"{owner}#{java_text(member)}" for owner, member in each.members if self._lacks(owner, member)}
        return lacking, unknown

    def _lacks(self, owner: str, member: Member) -> bool:
        """Return whether no class from which `owner` inherits has the member, as far as that is certain."""
        if not self.is_own(owner):
            return self.table.lacks_member(owner, member, self.release)
        above = [each for each in self.ancestors(owner) if each != OBJECT]
        own = [self.plugin.classes[each] for each in above if self.is_own(each)]
        outside = [each for each in above if not self.is_own(each)]
        if len(outside) != 1 or len(above) > _MOST_ANCESTORS or any(member in each.declared for each in own):
            return False
        return self.table.lacks_member(outside[0], member, self.release)

    def led_to(self) -> dict[str, str | None]:
        """Return the plugin's classes to which one leads that Connect runs, nearest first, each with the one before."""
        found: dict[str, str | None] = dict.fromkeys(self.roots())
        for name in (waiting := list(found)):
            each = self.plugin.classes[name]
            for target in sorted({*each.classes, *each.parents, *self.plugin.services.get(name, ())}):
                if target not in found and self.is_own(target):
                    found[target] = name
                    waiting.append(target)
        return found


def _path(name: str, led_to: Mapping[str, str | None]) -> tuple[str, ...]:
    """Return the classes that lead to one, and itself; none where nothing leads there."""
    path, before = list[str](), name if name in led_to else None
    while before is not None:
        path.append(dotted(before))
        before = led_to[before]
    return tuple(reversed(path))


def is_isolated(name: str) -> bool:
    """Return whether a plugin's class loader takes this class of Kafka's from the plugin first."""
    return _ISOLATED.fullmatch(name) is not None


def installed_plugins(plugin: Plugin, table: KafkaClasses, release: str) -> list[InstalledPlugin]:
    """Return the classes of a plugin that Connect can run; one of several jars is there several times."""
    found = []
    for name in _Classes(plugin, table, release).roots():
        for file in (plugin.classes[name].file, *plugin.copies.get(name, ())):
            path = f"{plugin.path}/{file}" if file and not plugin.path.endswith(file) else plugin.path
            found.append(InstalledPlugin(dotted(name), plugin.versions.get(file), path))
    return found


def judge_plugin(plugin: Plugin, table: KafkaClasses, release: str, kafka: str) -> list[Finding]:
    """Judge one plugin by a release of Kafka; `kafka` is the version that was named."""
    classes = _Classes(plugin, table, release)
    missing, unknown = _find_missing(classes)
    found = []
    for severity, wanted in ((ERROR, True), (WARNING, False)):
        names = [each for each in missing if bool(each.path) is wanted]
        if names:
            found.append(_not_for_kafka(plugin, kafka, names, severity))
    return [*found, *_not_judged(plugin, kafka, unknown), *_bundled(classes, kafka)]


def _find_missing(classes: _Classes) -> tuple[list[MissingName], list[str]]:
    """Return what the plugin's classes name and the release lacks, and the names of which nothing is known."""
    led_to, unknown = classes.led_to(), set[str]()
    order = {name: place for place, name in enumerate(led_to)}
    by_name = defaultdict[str, list[PluginClass]](list)
    for each in classes.live():
        if each.name.startswith(KAFKA) and not is_isolated(each.name) and each.name not in led_to:
            continue  # bundled, and no plugin was seen to lead there: a finding of its own says so
        lacking, unsure = classes.missing(each)
        unknown |= unsure
        for name in lacking:
            by_name[name].append(each)
    found = []
    for name, named_by in sorted(by_name.items()):
        first = min(named_by, key=lambda each: (order.get(each.name, len(order)), each.name))
        moved = None if "#" in name else classes.table.moved_to(name, classes.release)
        found.append(
            MissingName(
                name=dotted(name),
                moved_to=moved and dotted(moved),
                named_by=dotted(first.name),
                file=first.file,
                by=len(named_by),
                path=_path(first.name, led_to),
                is_parent=name in first.parents,
            )
        )
    return found, sorted(map(dotted, unknown))


def _not_for_kafka(plugin: Plugin, kafka: str, missing: Sequence[MissingName], severity: str) -> Finding:
    more, listed = len(missing) - _MOST_NAMED, missing[:_MOST_LISTED]
    sentences = [_missing_text(each) for each in missing[:_MOST_NAMED]]
    sentences += [f"and {counted(more, 'more name')}"] if more > 0 else []
    return Finding(
        codes.PLUGIN_NOT_FOR_KAFKA, severity, plugin.path,
        f"{plugin.path} names what Kafka {kafka} lacks: {'; '.join(sentences)}. It fails when that code runs",
        codes.PLUGIN_NOT_FOR_KAFKA.next,
        {"kafka": kafka, "names": len(missing), "missing": [_missing_evidence(each) for each in listed]},
    )  # fmt: skip


def _missing_text(each: MissingName) -> str:
    moved = f" (now {each.moved_to})" if each.moved_to else ""
    where = f" in {each.file}" if each.file else ""
    more = f" and {counted(each.by - 1, 'other class', 'other classes')}" if each.by > 1 else ""
    text = f"{each.name}{moved}, {'extended' if each.is_parent else 'named'} by {each.named_by}{where}{more}"
    if len(each.path) > 1:
        return f"{text}, to which {each.path[0]} leads"
    return text if each.path else f"{text}, to which no plugin was seen to lead"


def _missing_evidence(each: MissingName) -> Mapping[str, object]:
    return {
        "name": each.name,
        "moved_to": each.moved_to,
        "named_by": each.named_by,
        "classes": each.by,
        "file": each.file,
        "path": list(each.path),
    }


def _not_judged(plugin: Plugin, kafka: str, unknown: Sequence[str]) -> Iterator[Finding]:
    parts = [(f"{plugin.path}: not read: ", plugin.unread)] if plugin.unread else []
    what = f"{plugin.path} names classes of which it is not known whether Kafka {kafka} has them: "
    parts += [(what, tuple(unknown))] if unknown else []
    for text, names in parts:
        more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
        yield Finding(
            codes.PLUGIN_NOT_JUDGED, WARNING, plugin.path, f"{text}{', '.join(names[:_MOST_NAMED])}{more}",
            codes.PLUGIN_NOT_JUDGED.next, {"kafka": kafka, "names": list(names[:_MOST_LISTED])}, certain=False,
        )  # fmt: skip


def _bundled(classes: _Classes, kafka: str) -> Iterator[Finding]:
    """Yield a warning for each jar with classes that the worker's Kafka has, and that are never taken from it."""
    plugin, by_file = classes.plugin, defaultdict[str, list[str]](list)
    for name, each in plugin.classes.items():
        if name.startswith(KAFKA) and not classes.is_own(name):
            by_file[each.file].append(name)
    for file, names in sorted(by_file.items()):
        where = file or plugin.path
        version = f" (of version {plugin.versions[file]})" if plugin.versions.get(file) else ""
        yield Finding(
            codes.PLUGIN_BUNDLES_KAFKA, WARNING, plugin.path,
            f"{where}{version} has {counted(len(names), 'class', 'classes')} that Kafka {kafka} has, too, such as "
            f"{dotted(min(names))}: Connect takes Kafka's, and the others from the jar",
            codes.PLUGIN_BUNDLES_KAFKA.next, {"kafka": kafka, "file": file, "classes": len(names)},
        )  # fmt: skip


def find_two_versions(installed: Iterable[InstalledPlugin]) -> Iterator[Finding]:
    """Yield a warning for each set of plugin classes that are there in two versions, or whose versions are unknown."""
    by_name = defaultdict[str, dict[str, str | None]](dict)
    for each in installed:
        by_name[each.name][each.path] = each.version
    alike = defaultdict[tuple[tuple[str, str | None], ...], list[str]](list)
    for name, versions in by_name.items():
        if len({version or path for path, version in versions.items()}) > 1:
            alike[tuple(sorted(versions.items()))].append(name)
    for found, names in alike.items():
        more = f" and {counted(len(names) - 1, 'more class', 'more classes')}" if names[1:] else ""
        places = ", ".join(f"{version or 'of an unknown version'} in {path}" for path, version in found)
        yield Finding(
            codes.PLUGIN_IN_TWO_VERSIONS, WARNING, sorted(names)[0],
            f"{sorted(names)[0]}{more}: {places}", codes.PLUGIN_IN_TWO_VERSIONS.next,
            {"classes": sorted(names)[:_MOST_LISTED], "versions": dict(found)},
            certain=all(version for _path, version in found),
        )  # fmt: skip


_TYPE = re.compile(r"(\[*)(?:L([^;]+);|([BCDFIJSZ]))")
_NUMBERS = {
    "B": "byte", "C": "char", "D": "double", "F": "float", "I": "int", "J": "long", "S": "short", "Z": "boolean",
}  # fmt: skip


def java_text(member: Member) -> str:
    """Return a field or method as Java's documentation has it: `poll(long)`."""
    name, descriptor = member
    if not descriptor.startswith("("):
        return name
    types = _TYPE.findall(descriptor[1 : descriptor.rfind(")")])
    words = ((named or _NUMBERS[number]).rpartition("/")[2] + "[]" * len(array) for array, named, number in types)
    return f"{name}({', '.join(words)})"


def dotted(name: str) -> str:
    """Return the name of a class as Java has it."""
    return name.replace("/", ".")
