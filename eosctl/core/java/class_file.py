"""Java class files, as far as names go: what a class is, declares, and refers to (JVM specification, chapter 4).

Code is not read: the constant pool has each class, field and method that some method of the class names.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

from msgspec import Struct

OBJECT = "java/lang/Object"
_MAGIC = 0xCAFEBABE
_COUNT_AT = 8
UTF8 = 1
_CLASS, _NAME_AND_TYPE = 7, 12
_MEMBER_KINDS = frozenset({9, 10, 11})
"""CONSTANT_Fieldref, CONSTANT_Methodref and CONSTANT_InterfaceMethodref."""
_SIZES = {3: 5, 4: 5, 5: 9, 6: 9, 7: 3, 8: 3, 9: 5, 10: 5, 11: 5, 12: 5, 15: 4, 16: 3, 17: 5, 18: 5, 19: 3, 20: 3}
"""The sizes of all constants but texts, the kind included."""
_WIDE = (5, 6)
"""A long and a double take two places in the pool."""
_PUBLIC, _PROTECTED, _INTERFACE, _ABSTRACT = 0x0001, 0x0004, 0x0200, 0x0400

Member = tuple[str, str]
"""The name and the descriptor of a field or method: `close`, `()V`."""


class NotAClassFileError(ValueError):
    """The bytes are not those of a class file."""


class ClassFile(Struct, frozen=True):
    """One class. Names are as in class files: `java/lang/Object`.

    `declared` are its own fields and methods, with their access flags. `classes` are the classes that it names, and
    `members` the fields and methods that it uses, each with the class that it is looked up in.
    """

    name: str
    flags: int
    superclass: str | None
    interfaces: tuple[str, ...]
    declared: Mapping[Member, int]
    classes: frozenset[str]
    members: frozenset[tuple[str, Member]]

    @property
    def parents(self) -> tuple[str, ...]:
        """The superclass and the interfaces."""
        return (*([self.superclass] if self.superclass else ()), *self.interfaces)

    @property
    def is_concrete(self) -> bool:
        """Whether it can be instantiated, as far as its flags say."""
        return not self.flags & (_INTERFACE | _ABSTRACT)

    @property
    def visible(self) -> frozenset[Member]:
        """The public and protected fields and methods that it declares."""
        return frozenset(each for each, flags in self.declared.items() if flags & (_PUBLIC | _PROTECTED))


def read_class(data: bytes) -> ClassFile:
    """Read a class file; raise NotAClassFileError for anything else."""
    try:
        return _read(data)
    except (struct.error, IndexError, KeyError, TypeError, ValueError) as exc:
        raise NotAClassFileError(str(exc)) from exc


def _read(data: bytes) -> ClassFile:
    (magic,) = struct.unpack_from(">I", data)
    if magic != _MAGIC:
        raise NotAClassFileError("it does not begin as a class file does")
    pool, at = _read_pool(data)
    flags, this, superclass, interfaces = struct.unpack_from(">HHHH", data, at)
    at += 8
    parents = struct.unpack_from(f">{interfaces}H", data, at)
    declared: dict[Member, int] = {}
    at = _read_members(data, at + 2 * interfaces, pool, declared)
    _read_members(data, at, pool, declared)
    classes = (_class_name(pool, index) for index, each in pool.items() if isinstance(each, int))
    members = (each for each in pool.values() if isinstance(each, tuple) and each[0] in _MEMBER_KINDS)
    return ClassFile(
        name=_class_name(pool, this) or "",
        flags=flags,
        superclass=_class_name(pool, superclass) if superclass else None,
        interfaces=tuple(name for name in (_class_name(pool, each) for each in parents) if name),
        declared=declared,
        classes=frozenset(name for name in classes if name),
        members=frozenset(
            (owner, (_text(pool, pair[1]), _text(pool, pair[2])))
            for _kind, owned_by, named in members
            if (owner := _class_name(pool, owned_by)) and (pair := _pair(pool, named))
        ),
    )


_Pool = Mapping[int, "bytes | int | tuple[int, int, int]"]
"""Index -> the text of an Utf8, the name's index of a Class, or the kind and both indices of a pair."""


def constants_of(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Yield the constants of a class file: index, kind (1 is a text), and begin and end of its bytes, kind included.

    A text's length is in the two bytes behind its kind. Raises struct.error, IndexError or KeyError for other bytes.
    """
    (count,) = struct.unpack_from(">H", data, _COUNT_AT)
    at, index = _COUNT_AT + 2, 1
    while index < count:
        kind = data[at]
        end = at + (3 + struct.unpack_from(">H", data, at + 1)[0] if kind == UTF8 else _SIZES[kind])
        yield index, kind, at, end
        at = end
        index += 2 if kind in _WIDE else 1


def _read_pool(data: bytes) -> tuple[_Pool, int]:
    """Return the constants that matter, and where the pool ends."""
    pool: dict[int, bytes | int | tuple[int, int, int]] = {}
    end = _COUNT_AT + 2
    for index, kind, at, end in constants_of(data):
        if kind == UTF8:
            pool[index] = data[at + 3 : end]
        elif kind == _CLASS:
            (pool[index],) = struct.unpack_from(">H", data, at + 1)
        elif kind in _MEMBER_KINDS or kind == _NAME_AND_TYPE:
            pool[index] = (kind, *struct.unpack_from(">HH", data, at + 1))
    return pool, end


def _read_members(data: bytes, at: int, pool: _Pool, into: dict[Member, int]) -> int:
    """Read the fields or the methods `into` a mapping; return where they end."""
    (count,) = struct.unpack_from(">H", data, at)
    at += 2
    for _ in range(count):
        flags, name, descriptor, attributes = struct.unpack_from(">HHHH", data, at)
        into[_text(pool, name), _text(pool, descriptor)] = flags
        at += 8
        for _ in range(attributes):
            (length,) = struct.unpack_from(">I", data, at + 2)
            at += 6 + length
    return at


def _text(pool: _Pool, index: int) -> str:
    value = pool[index]
    if not isinstance(value, bytes):
        raise NotAClassFileError(f"constant {index} is no text")
    return value.decode("utf-8", "replace")


def _class_name(pool: _Pool, index: int) -> str | None:
    """Return the name of a class; that of an array's elements, and None for an array of numbers."""
    value = pool[index]
    if not isinstance(value, int):
        raise NotAClassFileError(f"constant {index} is no class")
    name = _text(pool, value)
    if not name.startswith("["):
        return name
    element = name.lstrip("[")
    return element[1:-1] if element.startswith("L") and element.endswith(";") else None


def _pair(pool: _Pool, index: int) -> tuple[int, int, int]:
    value = pool[index]
    if not isinstance(value, tuple) or value[0] != _NAME_AND_TYPE:
        raise NotAClassFileError(f"constant {index} is no name and type")
    return value
