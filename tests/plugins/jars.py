"""Class files and jars as small as they may be, for what reads and judges plugins."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from eosctl.core.java.class_file import OBJECT

TASK, CONNECTOR = "org/apache/kafka/connect/source/SourceTask", "org/apache/kafka/connect/source/SourceConnector"
SANITIZER, APP_INFO = "org/apache/kafka/common/utils/Sanitizer", "org/apache/kafka/common/utils/AppInfoParser"
UTILS = "org/apache/kafka/common/utils/Utils"
SLOW_SOURCE = Path(__file__).parent.parent / "slow_source" / "slow-source.jar"
PUBLIC, INTERFACE_AND_ABSTRACT = 0x21, 0x0601


class _Pool:
    """The constants of a class; each is there once."""

    def __init__(self) -> None:
        self.entries: dict[bytes, int] = {}

    def _add(self, entry: bytes) -> int:
        return self.entries.setdefault(entry, len(self.entries) + 1)

    def text(self, text: str) -> int:
        """An Utf8."""
        data = text.encode()
        return self._add(struct.pack(">BH", 1, len(data)) + data)

    def class_(self, name: str) -> int:
        """A Class."""
        return self._add(struct.pack(">BH", 7, self.text(name)))

    def member(self, owner: str, name: str, descriptor: str) -> int:
        """A Methodref."""
        pair = self._add(struct.pack(">BHH", 12, self.text(name), self.text(descriptor)))
        return self._add(struct.pack(">BHH", 10, self.class_(owner), pair))


def class_bytes(
    name: str,
    *,
    extends: str = OBJECT,
    implements: Iterable[str] = (),
    names: Iterable[str] = (),
    uses: Iterable[tuple[str, str, str]] = (),
    declares: Iterable[tuple[str, str]] = (),
    flags: int = PUBLIC,
) -> bytes:
    """A class that names these classes, uses these members (owner, name, descriptor), and declares these methods."""
    pool = _Pool()
    this, superclass = pool.class_(name), pool.class_(extends)
    interfaces = [pool.class_(each) for each in implements]
    for each in names:
        pool.class_(each)
    for owner, member, descriptor in uses:
        pool.member(owner, member, descriptor)
    methods = [struct.pack(">HHHH", 1, pool.text(one), pool.text(other), 0) for one, other in declares]
    return b"".join(
        [
            struct.pack(">IHHH", 0xCAFEBABE, 0, 61, len(pool.entries) + 1),
            *pool.entries,
            struct.pack(">HHHH", flags, this, superclass, len(interfaces)),
            *(struct.pack(">H", each) for each in interfaces),
            struct.pack(">HH", 0, len(methods)),
            *methods,
            struct.pack(">H", 0),
        ]
    )


def write_jar(path: Path, *classes: bytes, more: Mapping[str, bytes] | None = None) -> Path:
    """A jar of these classes, each at its place, and of more entries."""
    from eosctl.core.java.class_file import read_class

    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for data in classes:
            archive.writestr(f"{read_class(data).name}.class", data)
        for name, data in (more or {}).items():
            archive.writestr(name, data)
    return path
