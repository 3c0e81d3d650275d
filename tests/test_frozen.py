"""`frozen` beside the dataclass that it stands for: one behaves as the other."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable, Sequence
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace
from typing import Any

import pytest

from eosctl.core.frozen import NamedTuple, frozen


@frozen
class Ours:
    """With every kind of field."""

    name: str
    count: int = 1
    seen: Sequence[str] = field(default_factory=list)
    secret: str = field(default="s", repr=False)
    told: str = field(default="", compare=False)
    named: int = field(default=3, kw_only=True)
    listed: Sequence[int] = field(default_factory=list, kw_only=True)
    _initial: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_initial", self.name[0])

    def twice(self) -> int:
        return 2 * self.count

    def initial(self) -> str:
        return self._initial


@dataclass(frozen=True, slots=True)
class Theirs:
    """The same."""

    name: str
    count: int = 1
    seen: Sequence[str] = field(default_factory=list)
    secret: str = field(default="s", repr=False)
    told: str = field(default="", compare=False)
    named: int = field(default=3, kw_only=True)
    listed: Sequence[int] = field(default_factory=list, kw_only=True)
    _initial: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_initial", self.name[0])

    def twice(self) -> int:
        return 2 * self.count

    def initial(self) -> str:
        return self._initial


@frozen
class Named:
    """With methods of its own, and one that Python would take away beside an `__eq__`."""

    name: str

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Named) and self.name.lower() == other.name.lower()


def _matched(value: Any) -> object:
    match value:
        case Ours(name, count) | Theirs(name, count):
            return name, count
    return None


TELLS: dict[str, Callable[[Any], object]] = {
    "members": lambda made: (
        made.name,
        made.count,
        made.seen,
        made.secret,
        made.told,
        made.named,
        made.twice(),
        made.initial(),
    ),
    "fields": lambda made: [(each.name, each.type, each.init, each.kw_only, each.compare) for each in fields(made)],
    "no dict": lambda made: (hasattr(made, "__dict__"), type(made).__slots__, type(made).__match_args__),
    "repr": lambda made: repr(made).replace("Ours", "Theirs"),
    "equal": lambda made: (made == replace(made, told="else"), made == replace(made, count=9), made == made.name),
    "replaced": lambda made: (replace(made, count=7).count, replace(made, name="else").initial()),
    "pickled": lambda made: pickle.loads(pickle.dumps(made)) == made,  # noqa: S301 - our own
    "pickled whole": lambda made: pickle.loads(pickle.dumps(made)).initial(),  # noqa: S301 - our own
    "copied": lambda made: (copy.deepcopy(made) == made, copy.copy(made).seen is made.seen, copy.copy(made).initial()),
    "matched": _matched,
    "parameters": lambda made: [(each.name, each.kind) for each in inspect.signature(type(made)).parameters.values()],
    "by name": lambda made: replace(made, named=5, listed=[1]).listed,
}


@pytest.mark.parametrize("tell", TELLS.values(), ids=TELLS)
@pytest.mark.parametrize("given", [("a",), ("a", 2, ["x"]), ("a", 2, ["x"], "t", "u")])
def test_it_is_as_the_dataclass(tell: Callable[[Any], object], given: tuple[Any, ...]) -> None:
    assert tell(Ours(*given)) == tell(Theirs(*given))


def _raised(doing: Callable[[], object]) -> tuple[type[Exception], str]:
    with pytest.raises((TypeError, FrozenInstanceError)) as raised:
        doing()
    return raised.type, str(raised.value).replace("Ours", "Theirs")


REFUSALS: dict[str, Callable[[Any], object]] = {
    "assigning": lambda kind: setattr(kind("a"), "name", "b"),
    "deleting": lambda kind: delattr(kind("a"), "name"),
    "too few": lambda kind: kind(),
    "too many": lambda kind: kind(1, 2, 3, 4, 5, 6),
    "unknown": lambda kind: kind("a", other=1),
    "hashing what can't be": lambda kind: hash(kind("a")),
}


@pytest.mark.parametrize("doing", REFUSALS.values(), ids=REFUSALS)
def test_it_refuses_what_the_dataclass_refuses(doing: Callable[[Any], object]) -> None:
    assert _raised(lambda: doing(Ours)) == _raised(lambda: doing(Theirs))


def test_equal_ones_have_one_hash() -> None:
    ours = Ours("a", seen=(), listed=())
    assert hash(ours) == hash(replace(ours, told="else"))
    assert hash(ours) == hash(("a", 1, (), "s", 3, ())) == hash(Theirs("a", seen=(), listed=()))


def test_a_default_that_is_made_is_made_anew() -> None:
    assert Ours("a").seen is not Ours("a").seen


def test_methods_of_its_own_stay() -> None:
    assert repr(Named("x")) == "<x>"
    assert Named("x") == Named("X")
    assert len({Named("x"), Named("x")}) == 1


class Place(NamedTuple):
    """A named tuple of ours."""

    host: str
    port: int = 9092

    @property
    def text(self) -> str:
        return f"{self.host}:{self.port}"

    def __str__(self) -> str:
        return self.text


def test_a_named_tuple_is_as_typings() -> None:
    place = Place("b")
    assert (place, str(place), repr(place)) == (("b", 9092), "b:9092", "Place(host='b', port=9092)")
    assert place._replace(port=1) == Place("b", 1) == Place(port=1, host="b")
    assert (Place._fields, Place._field_defaults, Place.__doc__) == (
        ("host", "port"), {"port": 9092}, "A named tuple of ours.",
    )  # fmt: skip
    assert pickle.loads(pickle.dumps(place)) == place  # noqa: S301 - our own
    assert isinstance(pickle.loads(pickle.dumps(place)), Place)  # noqa: S301 - our own
    assert inspect.get_annotations(Place) == {"host": "str", "port": "int"}
    with pytest.raises(TypeError, match="host"):
        Place()  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        place.port = 1  # type: ignore[misc]
