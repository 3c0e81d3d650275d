"""Values whose classes are quickly made: `frozen` for a frozen dataclass, `NamedTuple` for typing's.

A dataclass compiles six functions for each class, at each start of each command: together that took longer than Python
itself takes to start. With `frozen`, `__init__` alone is compiled; the other methods are closures. typing compiles each
annotation of a named tuple, which only type checkers read; there are fifty of them in what a command loads.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast, dataclass_transform

T = TypeVar("T")
_Method = Callable[..., Any]


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """The class as a frozen, slotted dataclass; methods of its own stay."""
    made = dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    members = fields(cast("Any", made))
    methods: dict[str, _Method] = {
        "__init__": _initialiser(made, members),
        "__repr__": _representer([each.name for each in members if each.repr]),
        "__setattr__": _refuse_to_assign,
        "__delattr__": _refuse_to_delete,
        **_comparers([each.name for each in members if each.compare]),
        **_picklers([each.name for each in members]),
    }
    for name, method in methods.items():
        if cls.__dict__.get(name) is None:  # Python itself puts a __hash__ of None beside an __eq__
            setattr(made, name, method)
    return made


def _initialiser(made: type, members: Sequence[Field[Any]]) -> _Method:
    """`__init__`, compiled so that it is called as fast as any, and says what is missing as any does."""
    names: dict[str, Any] = {"_missing": MISSING}
    parameters, keywords, body = ["self"], list[str](), list[str]()
    for each in (each for each in members if each.init):
        name, some = each.name, keywords if each.kw_only else parameters
        names[f"_set_{name}"] = getattr(made, name).__set__
        value = name
        if each.default_factory is not MISSING:
            names[f"_make_{name}"] = each.default_factory
            some.append(f"{name}=_missing")
            value = f"_make_{name}() if {name} is _missing else {name}"
        elif each.default is not MISSING:
            names[f"_default_{name}"] = each.default
            some.append(f"{name}=_default_{name}")
        else:
            some.append(name)
        body.append(f" _set_{name}(self, {value})\n")
    if hasattr(made, "__post_init__"):
        body.append(" self.__post_init__()\n")
    parameters += ["*", *keywords] if keywords else []
    exec(f"def __init__({', '.join(parameters)}):\n{''.join(body) or ' pass'}", names)  # noqa: S102 - as dataclass does
    initialiser = names["__init__"]
    initialiser.__qualname__ = f"{made.__qualname__}.__init__"
    return cast("_Method", initialiser)


def _representer(names: Sequence[str]) -> _Method:
    def representation(self: object) -> str:
        members = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({members})"

    return representation


def _comparers(names: Sequence[str]) -> dict[str, _Method]:
    values_of: _Method = attrgetter(*names) if names else lambda _self: ()

    def equals(self: object, other: object) -> bool:
        return values_of(self) == values_of(other) if type(other) is type(self) else NotImplemented

    return {"__eq__": equals, "__hash__": lambda self: hash(values_of(self))}


def _picklers(names: Sequence[str]) -> dict[str, _Method]:
    """Pickle would set the members one by one, which is refused."""

    def set_state(self: object, values: Sequence[object]) -> None:
        for name, value in zip(names, values, strict=True):
            object.__setattr__(self, name, value)

    return {"__getstate__": lambda self: [getattr(self, name) for name in names], "__setstate__": set_state}


def _refuse_to_assign(_self: object, name: str, _value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(_self: object, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:

    class _Making(type):
        """Makes a named tuple of a class statement; its methods and its docstring stay."""

        def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> type:
            if not bases:
                return super().__new__(cls, name, bases, namespace)
            fields = namespace.get("__annotations__", {})
            defaults = [namespace[field] for field in fields if field in namespace]
            made = namedtuple(name, fields, defaults=defaults, module=namespace["__module__"])
            for member, value in namespace.items():
                if member not in fields:
                    setattr(made, member, value)
            return made

    class NamedTuple(metaclass=_Making):
        """The base class."""
