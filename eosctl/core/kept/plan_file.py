"""Plan files, and the reading of JSON and YAML that people or other programs may have written.

A plan file has a plan as JSON beside its digest, so that nothing is applied that was changed after it was shown. The
contents of a plan belong to its own module (`core.offsets.migration`, `upgrade.plan`), which also defines how its
file is read; a file holds no secrets.

JSON is read as it is, or into typed classes, with errors in plain words. YAML is refused in forms that PyYAML accepts
and that no settings file needs.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import asdict

from eosctl.core.wording import encodable
from eosctl.errors import InputFileError

if TYPE_CHECKING:
    import yaml


T = TypeVar("T")

_MISSING = re.compile(r"Object missing required field `(?P<member>.+?)`(?: - at `(?P<place>.+)`)?")
_WRONG = re.compile(r"(?P<what>.+?)(?: - at (?P<key>key in )?`(?P<place>.+)`)?")


class WrongMemberError(ValueError):
    """A member that `is_missing`, or has a wrong value; the text names it: `sources[0] has no 'name'`."""

    def __init__(self, words: str, *, is_missing: bool = False) -> None:
        super().__init__(words)
        self.is_missing = is_missing


def json_of(text: bytes | str, *, mend: bool = False) -> object:
    """Return the value of a JSON text in UTF-8.

    Raises ValueError for text that is not JSON, is nested too deep, or spells half of a surrogate pair (`"\\ud800"`),
    which no name or text of Kafka's, and nothing sent or printed, can hold. With `mend` it becomes a question mark.
    """
    text = text if isinstance(text, str) else text.decode("utf-8-sig")
    try:
        found = json.loads(text)
        if "\\ud" in text or "\\uD" in text or encodable(text) != text:
            found = _mended(found) if mend else _refuse_half_surrogates(found)
    except RecursionError as exc:
        raise ValueError("it is nested too deep") from exc
    return found


def _refuse_half_surrogates(data: T) -> T:
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError as exc:
        raise WrongMemberError("a text in it has half of a surrogate pair") from exc
    return data


def _mended(data: object) -> object:
    return json.loads(json.dumps(data, ensure_ascii=False).encode("utf-8", "replace"))


def typed(data: object, kind: type[T]) -> T:
    """Convert `data`, as `json.loads` returns it, to a `kind` (a dataclass or a Struct).

    Unknown members are ignored. Raises WrongMemberError.
    """
    import msgspec  # only for readers

    try:
        _refuse_half_surrogates(data)
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as exc:
        raise _in_words(str(exc)) from None
    except RecursionError as exc:
        raise WrongMemberError("it is nested too deep") from exc


def _in_words(text: str) -> WrongMemberError:
    """Translate msgspec's "Expected `int`, got `str` - at `$.tally.keys`" into "tally.keys: expected int, got str"."""
    missing = _MISSING.fullmatch(text)
    if missing is not None:
        return WrongMemberError(f"{_place(missing['place']) or 'it'} has no {missing['member']!r}", is_missing=True)
    wrong = _WRONG.fullmatch(text)
    assert wrong is not None  # noqa: S101 - it fits every text of one line
    what = wrong["what"].replace("`", "").replace(" | ", " or ")
    what = what[:1].lower() + what[1:]
    return WrongMemberError(f"{_place(wrong['place'])}: {what}" if _place(wrong["place"]) else what)


def _place(path: str | None) -> str:
    return (path or "").removeprefix("$").removeprefix(".")


_MOST_VALUES = 100_000
"""The limit once aliases are followed: nine lines of nine aliases each become gigabytes (a billion laughs)."""
_DEEPEST = 100
"""The limit of nested brackets on a line: PyYAML's time grows with the square of their number (6.0)."""


def yaml_of(
    text: str,
    *,
    source: str,
    once: bool = False,
    hint: str | None = None,
    number: Callable[[str], object] | None = None,
) -> object:
    """Return the value of a YAML document; of two equal keys the later counts, unless `once` forbids duplicates.

    With `number`, that makes the value of a number from its text, and plain values that parsers read differently are
    refused. Raises InputFileError, with the line if it is known, for text that is not YAML, or is too large; its values
    may be secrets, and are in no message.
    """
    import yaml

    class ShallowLoader(yaml.SafeLoader):
        def fetch_flow_collection_start(self, token: object) -> None:
            if self.flow_level == _DEEPEST:
                raise _TooLargeError(f"it is nested more than {_DEEPEST} deep")
            super().fetch_flow_collection_start(token)

    try:
        loader = ShallowLoader(text)
        try:
            root = loader.get_single_node()
            if root is None:
                return None
            _measure(root, {})
            if once:
                _refuse_double_keys(loader, root)
            if number is not None:
                _refuse_ambiguous(root, source, set())
                for kind in ("int", "float"):
                    loader.add_constructor(f"{_TAG}{kind}", partial(_number, number))
            return loader.construct_document(root)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as exc:
        line = exc.problem_mark.line + 1 if exc.problem_mark else 0
        problem = _QUOTED.sub("'…'", str(exc.problem))
        raise InputFileError(f"{source}:{line}: not valid YAML: {problem}", hint=hint) from None
    except _TooLargeError as exc:
        raise InputFileError(f"{source}: not valid YAML: {exc}", hint=hint) from None
    except (yaml.YAMLError, ValueError, TypeError, ArithmeticError, LookupError, AttributeError, RecursionError) as exc:
        # what its constructors raise for `!!timestamp x`, `!!bool x` and such
        raise InputFileError(f"{source}: not valid YAML: {type(exc).__name__}", hint=hint) from None


_QUOTED = re.compile(r"'(?!<)[^']{2,}'")
"""An alias, anchor or tag in a message of PyYAML's: `password: *x` and `password: !x` may be meant as text."""
_TAG = "tag:yaml.org,2002:"
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_NO_NUMBER = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_OTHERS_READ = re.compile(rf"[yYnN]|0o[0-7]+|{_JSON_NUMBER.pattern}")
"""Plain values that PyYAML takes for text, and other parsers for booleans and numbers."""


def _refuse_ambiguous(node: yaml.Node, source: str, seen: set[int]) -> None:
    """Raise InputFileError for a plain value that YAML 1.1 and 1.2, or programs, read as different values.

    In YAML 1.1 yes is true, 010 is 8, 12:30 is 750 and 1_000 is 1000; in YAML 1.2 1e3 is a number, and 0o10 is 8.
    """
    import yaml

    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.ScalarNode) and node.style is None:
        text, kind = str(node.value), str(node.tag).removeprefix(_TAG)
        is_same = {
            "bool": text.lower() in ("true", "false"),
            "int": bool(_JSON_NUMBER.fullmatch(text)),
            "float": bool(_JSON_NUMBER.fullmatch(text) or _NO_NUMBER.fullmatch(text)),
            "str": not _OTHERS_READ.fullmatch(text),
        }
        if not is_same.get(kind, True):
            raise InputFileError(
                f"{source}:{node.start_mark.line + 1}: YAML parsers disagree on this plain value",
                hint="Put it in quotes. Values such as yes, on, 010, 0x10, 12:30, 1_000 and 1e3 are booleans, numbers "
                "or text, depending on the parser.",
            )
    if isinstance(node, yaml.CollectionNode):
        for each in node.value:
            for part in each if isinstance(each, tuple) else (each,):
                _refuse_ambiguous(part, source, seen)


def _number(number: Callable[[str], object], loader: yaml.SafeLoader, node: yaml.ScalarNode) -> object:
    text = str(node.value)
    return number(text) if _JSON_NUMBER.fullmatch(text) else loader.construct_yaml_float(node)


class _TooLargeError(Exception):
    """A document larger than any settings file."""


def _measure(node: yaml.Node, sizes: dict[int, int]) -> int:
    """Return how many values a node comes to, each alias counted again; raise _TooLargeError."""
    if id(node) not in sizes:
        sizes[id(node)] = _MOST_VALUES  # for one that holds itself
        below = node.value if isinstance(node.value, list) else []
        parts = [part for each in below for part in (each if isinstance(each, tuple) else (each,))]
        sizes[id(node)] = 1 + sum(_measure(part, sizes) for part in parts)
    if sizes[id(node)] > _MOST_VALUES:
        raise _TooLargeError(f"its aliases stand for more than {_MOST_VALUES:,} values")
    return sizes[id(node)]


def _refuse_double_keys(loader: yaml.SafeLoader, node: yaml.Node) -> None:
    """Raise MarkedYAMLError for a key that stands twice in one mapping."""
    import yaml

    if isinstance(node, yaml.MappingNode):
        keys = set[object]()
        for name, _value in node.value:
            key = loader.construct_object(name, deep=True)
            if key in keys:
                raise yaml.MarkedYAMLError(None, None, f"{key} stands there twice", node.start_mark)
            keys.add(key)
    if isinstance(node, yaml.CollectionNode):
        for each in node.value:
            for part in each if isinstance(each, tuple) else (each,):
                _refuse_double_keys(loader, part)


class HasDigest(Protocol):
    """A value that can be kept in a plan file: it has a digest."""

    def digest(self) -> str:
        """Return the sha256, in hex."""
        ...


AnyPlan = TypeVar("AnyPlan", bound=HasDigest)


class _Label(Struct, frozen=True):
    """The format and version that every plan file states, whatever its contents."""

    format: str
    version: int


class _Document(Struct, frozen=True):
    """A plan file of the right format; the plan is decoded separately."""

    digest: str
    plan: dict[str, object]


def digest_of(plan: Struct) -> str:
    """Return the sha256, in hex, of the plan's canonical JSON: sorted keys, no spaces, UTF-8."""
    return _digest(plan)


def _digest(document: object) -> str:
    text = json.dumps(document, default=asdict, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class PlanFormat(Struct, frozen=True):
    """The format of one command's plan files; `made_by` is that command, `upgrade plan`."""

    name: str
    version: int
    made_by: str

    def text(self, plan: Struct) -> str:
        """Return the text that `--plan-out` writes: members in the order in which people read them."""
        document = {"format": self.name, "version": self.version, "digest": digest_of(plan), "plan": plan}
        return json.dumps(document, default=asdict, indent=2, ensure_ascii=False) + "\n"

    def read(self, text: str, kind: type[AnyPlan], *, path: str) -> AnyPlan:
        """Read the plan in `text`; raises InputFileError if it is not one, or was changed after it was written."""
        try:
            document = json_of(text)
            label = typed(document, _Label)
            if (label.format, label.version) != (self.name, self.version):
                raise InputFileError(
                    f"{path} is a plan of another format: {label.format} {label.version}",
                    hint=f"This is read: {self.name} {self.version}, from `eosctl {self.made_by} --plan-out`.",
                )
            content = typed(document, _Document)
            plan = typed(content.plan, kind)
            digests = {plan.digest(), _digest(content.plan)}  # the second has members, too, that a plan has not
        except ValueError as exc:
            raise InputFileError(
                f"{path} is not a plan of `{self.made_by}`: {_reason(exc)}",
                hint=f"Write one with `eosctl {self.made_by} --plan-out FILE`.",
            ) from exc
        if digests != {content.digest}:
            raise InputFileError(
                f"{path} was changed after it was written: its digest does not match", hint="Plan again."
            )
        return plan


def _reason(exc: Exception) -> str:
    if isinstance(exc, json.JSONDecodeError):
        return f"it is not JSON (line {exc.lineno}, column {exc.colno}: {exc.msg})"
    if isinstance(exc, WrongMemberError) and exc.is_missing:
        return str(exc)
    return f"its members are not those of a plan ({exc})"
