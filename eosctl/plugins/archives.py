"""The plugins of a plugin.path entry, read as Connect reads it (`PluginUtils` and `PluginClassLoader` of Kafka 4.3.1).

The children of the folder are the plugins: folders of jars, jars, and folders of classes. Links are followed. Jars in
jars are not read, as Connect does not read them. The jars are other people's: each limit that one exceeds is reported.
"""

from __future__ import annotations

import lzma
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO

from msgspec import Struct, field
from msgspec.structs import replace

from eosctl.core.java.class_file import OBJECT, ClassFile, Member, NotAClassFileError, read_class
from eosctl.machine.files import open_regular
from eosctl.plugins.kafka_classes import KAFKA

MOST_CLASS_BYTES = 16 << 20
MOST_PLUGIN_BYTES = 1 << 30
"""The classes of one plugin, unpacked."""
MOST_DIRECTORY_BYTES = 32 << 20
"""The table of contents of a jar: 32 MiB list 300,000 classes or more."""
_MOST_TEXT_BYTES = 1 << 20
_MOST_ARCHIVES = 10_000
_END_OF_DIRECTORY = b"PK\x05\x06"
_BROKEN = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
    *(OSError, RuntimeError, EOFError, ValueError, IndexError, OverflowError),
)
"""What zipfile raises for a damaged archive, an encrypted one, and a compression that it does not know."""
_VERSIONED = re.compile(r"META-INF/versions/\d+/")
_SERVICES = "META-INF/services/"
_MANIFEST = "META-INF/MANIFEST.MF"
_POM = re.compile(r"META-INF/maven/[^/]+/[^/]+/pom\.properties")
_POM_VERSION = re.compile(r"^version=(\S+)", re.MULTILINE)
_MANIFEST_VERSION = re.compile(r"^Implementation-Version: *(\S+)", re.MULTILINE)
_FILE_VERSION = re.compile(r"-(\d[\w.+-]*)\.(?:jar|zip)", re.IGNORECASE)


class PluginClass(Struct, frozen=True):
    """A class of a plugin; `file` is the jar that has it. Names are as in class files.

    `members` are those that it uses of Kafka's classes, of itself and of its superclass.
    """

    name: str
    file: str
    is_concrete: bool
    parents: tuple[str, ...]
    classes: frozenset[str]
    members: frozenset[tuple[str, Member]]
    declared: frozenset[Member]


class Plugin(Struct, frozen=True):
    """One child of a plugin.path entry, with what its class loader finds in it.

    `versions` are those of its jars. `copies` are the further jars that have a class. `services` are the classes that
    its jars list for ServiceLoader, by interface. `unread` says what could not be read.
    """

    path: str
    classes: Mapping[str, PluginClass] = field(default_factory=dict)
    versions: Mapping[str, str | None] = field(default_factory=dict)
    copies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    services: Mapping[str, frozenset[str]] = field(default_factory=dict)
    unread: tuple[str, ...] = ()


def path_text(path: Path | str) -> str:
    """Return a path as text that every output can have: names of files need not be UTF-8."""
    return os.fsencode(path).decode("utf-8", "replace")


def plugin_paths(entry: Path) -> list[Path]:
    """Return the plugins of a plugin.path entry, in their order; raise OSError if it can't be listed."""
    if entry.is_dir():
        return sorted(each for each in entry.iterdir() if each.is_dir() or _is_archive(each))
    return [entry] if _is_archive(entry) else []


def _is_archive(path: Path) -> bool:
    return path.name.lower().endswith((".jar", ".zip"))


def read_plugin(path: Path, *, most_bytes: int = MOST_PLUGIN_BYTES) -> Plugin:
    """Read one child of a plugin.path entry; what can't be read is in `unread`."""
    reader = _Reader(most_bytes)
    if _is_archive(path):
        reader.read_archive(path, path_text(path.name))
        return reader.plugin(path)
    archives, folders = _find_archives(path, reader.unread)
    for archive in archives:
        reader.read_archive(archive, path_text(os.path.relpath(archive, path.resolve())))
    if not archives:
        reader.read_folder(path, folders)
    return reader.plugin(path)


def _find_archives(top: Path, unread: list[str]) -> tuple[list[Path], list[Path]]:
    """Return the jars below a folder, in the order of Connect's class loader, and the folders; follow links."""
    archives, folders, waiting, visited = set[Path](), [], [top.resolve()], set[Path]()
    while waiting:
        folder = waiting.pop()
        if folder in visited:
            continue
        visited.add(folder)
        folders.append(folder)
        try:
            below = [each.resolve() for each in folder.iterdir()]
            waiting += [each for each in below if each.is_dir()]
            archives.update(each for each in below if _is_archive(each) and not each.is_dir())
        except (OSError, RuntimeError) as exc:
            unread.append(f"{path_text(folder)}: {exc.strerror if isinstance(exc, OSError) else exc}")
        if len(archives) > _MOST_ARCHIVES:
            unread.append(f"{path_text(top)}: only the first {_MOST_ARCHIVES:,} jars were read")
            break
    return sorted(archives)[:_MOST_ARCHIVES], folders


class _Reader:
    """Collects what the jars of one plugin have."""

    def __init__(self, most_bytes: int) -> None:
        self.unread: list[str] = []
        self._classes: dict[str, PluginClass] = {}
        self._copies: dict[str, tuple[str, ...]] = {}
        self._services: dict[str, frozenset[str]] = {}
        self._versions: dict[str, str | None] = {}
        self._left = most_bytes

    def plugin(self, path: Path) -> Plugin:
        """Return what was read."""
        return Plugin(path_text(path), self._classes, self._versions, self._copies, self._services, tuple(self.unread))

    def read_archive(self, path: Path, name: str) -> None:
        """Read the classes and the lists of services of a jar."""
        try:
            descriptor, status = open_regular(path.resolve())
            with open(descriptor, "rb") as file:
                size = _directory_bytes(file, status.st_size)
                if size > MOST_DIRECTORY_BYTES:
                    self.unread.append(f"{name}: its table of contents has {size:,} bytes")
                    return
                with zipfile.ZipFile(file) as archive:
                    self._read_entries(archive, name)
        except _BROKEN as exc:
            self.unread.append(f"{name}: {exc}")

    def _read_entries(self, archive: zipfile.ZipFile, name: str) -> None:
        found = _FILE_VERSION.search(name)
        version, poms = None, list[str]()
        for entry in archive.infolist():
            if entry.filename.endswith(".class"):
                try:
                    with archive.open(entry) as file:
                        self._add(_VERSIONED.sub("", entry.filename, count=1), file, name)
                except _BROKEN as exc:
                    self.unread.append(f"{name}: {entry.filename}: {exc}")
            elif entry.filename.startswith(_SERVICES):
                self._add_services(entry.filename.removeprefix(_SERVICES), self._text(archive, entry, name))
            elif entry.filename == _MANIFEST:
                version = _first(_MANIFEST_VERSION, self._text(archive, entry, name))
            elif _POM.fullmatch(entry.filename):
                poms.append(_first(_POM_VERSION, self._text(archive, entry, name)) or "")
        by_pom = poms[0] if len(poms) == 1 else ""
        self._versions[name] = version or by_pom or (found[1] if found else None)

    def read_folder(self, top: Path, folders: Iterable[Path]) -> None:
        """Read the class files below a folder that has no jars, and its lists of services."""
        for path in sorted(each for folder in folders for each in folder.glob("*")):
            name = path_text(os.path.relpath(path, top.resolve()))
            is_class, is_list = name.endswith(".class"), name.startswith(_SERVICES)
            try:
                if not (is_class or is_list) or path.is_dir():
                    continue
                with open(open_regular(path.resolve())[0], "rb") as file:
                    if is_class:
                        self._add(name, file, "")
                    else:
                        text = (self._read(file, name, _MOST_TEXT_BYTES) or b"").decode("utf-8", "replace")
                        self._add_services(path.name, text)
            except (OSError, RuntimeError) as exc:
                self.unread.append(f"{name}: {exc}")
        self._versions[""] = None

    def _add(self, entry: str, file: IO[bytes], jar: str) -> None:
        """Read one class file, unless its place is not that of its name: no class loader finds it there."""
        where = f"{jar}: {entry}" if jar else entry
        data = self._read(file, where, MOST_CLASS_BYTES)
        if data is None:
            return
        try:
            read = read_class(data)
        except NotAClassFileError as exc:
            self.unread.append(f"{where} is no class file: {exc}")
            return
        if entry == f"{read.name}.class":
            self._keep(_plugin_class(read, jar))

    def _text(self, archive: zipfile.ZipFile, entry: zipfile.ZipInfo, jar: str) -> str:
        with archive.open(entry) as file:
            data = self._read(file, f"{jar}: {entry.filename}", _MOST_TEXT_BYTES)
        return (data or b"").decode("utf-8", "replace")

    def _read(self, file: IO[bytes], where: str, most: int) -> bytes | None:
        """Return the contents of a file; None, and say so, where it exceeds `most` or what is left for the plugin."""
        data = file.read(min(most, max(self._left, 0)) + 1)
        self._left -= len(data)
        if self._left >= 0 and len(data) <= most:
            return data
        limit = "the plugin has more than is read of one" if self._left < 0 else f"it exceeds {most >> 20} MiB"
        self.unread.append(f"{where} was not read: {limit}")
        return None

    def _keep(self, read: PluginClass) -> None:
        """Keep the class of the first jar; add what another release of it in the same jar names (JEP 238)."""
        known = self._classes.setdefault(read.name, read)
        if known is read:
            return
        if known.file != read.file:
            self._copies[read.name] = (*self._copies.get(read.name, ()), read.file)
            return
        self._classes[read.name] = replace(
            known,
            parents=tuple(dict.fromkeys((*known.parents, *read.parents))),
            classes=known.classes | read.classes,
            members=known.members | read.members,
            declared=known.declared | read.declared,
        )

    def _add_services(self, interface: str, text: str) -> None:
        lines = (line.partition("#")[0].strip() for line in text.splitlines())
        names = frozenset(line.replace(".", "/") for line in lines if line)
        key = interface.replace(".", "/")
        self._services[key] = self._services.get(key, frozenset()) | names


def _plugin_class(read: ClassFile, jar: str) -> PluginClass:
    """Return what the rules need of a class: a plugin may have 50,000."""
    own = {read.name, read.superclass}
    inherits = read.superclass not in (None, OBJECT) or read.interfaces
    return PluginClass(
        name=read.name,
        file=jar,
        is_concrete=read.is_concrete,
        parents=read.parents,
        classes=frozenset(each for each in read.classes if not each.startswith("java/")),
        members=frozenset(each for each in read.members if each[0].startswith(KAFKA) or each[0] in own),
        declared=frozenset(read.declared) if inherits else frozenset(),
    )


def _directory_bytes(file: IO[bytes], size: int) -> int:
    """Return the size of the archive's table of contents, which zipfile reads as a whole; 4 GiB for a zip64."""
    file.seek(max(0, size - (1 << 16) - 22))
    tail = file.read()
    at = tail.rfind(_END_OF_DIRECTORY)
    if at < 0:
        raise zipfile.BadZipFile("it is no zip archive")
    (length,) = struct.unpack_from("<I", tail, at + 12)
    return int(length)


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.search(text)
    return found[1] if found else None
