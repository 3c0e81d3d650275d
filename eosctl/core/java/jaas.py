"""Parses the line of sasl.jaas.config as Kafka does: quotes, escapes and comments are Java's. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

_FLAGS = {"REQUIRED", "REQUISITE", "SUFFICIENT", "OPTIONAL"}
_TOKEN = re.compile(
    r"""
    (?P<blank> [\x00-\x20]+ | //[^\r\n]* | /\*.*?(?:\*/|\Z) | /[^\r\n]* )
    | (?P<quote> ["'] ) (?P<quoted> (?: \\. | (?!(?P=quote)) [^\\\r\n] )* ) (?P<close> (?P=quote) )?
    | (?P<number> -?[0-9.][0-9.]* )
    | (?P<word> [A-Za-z_$\xa0-\U0010ffff] [A-Za-z0-9._$\xa0-\U0010ffff-]* )
    | (?P<sign> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:([0-3][0-7]{0,2}|[4-7][0-7]?)|(.))", re.DOTALL)
_CONTROLS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class LoginModule(Struct, frozen=True):
    """One entry of sasl.jaas.config; `name` is the class without its package. Its options hold secrets."""

    name: str
    options: Mapping[str, str]
    __repr__ = object.__repr__


def parse_jaas(text: str) -> LoginModule:
    """Parse a line such as `org.apache…PlainLoginModule required username="u" password='p';`.

    Source: `JaasConfig` and `JaasContext`, Kafka 4.3, and `java.io.StreamTokenizer`. Raises ValueError, whose text
    never holds a value: there are passwords among them.
    """
    tokens = list(_tokens(text))
    if len(tokens) < 3 or [kind for kind, _ in tokens[:2]] != ["text", "text"] or tokens[1][1].upper() not in _FLAGS:
        raise ValueError('it must read: LoginModuleClass required name="value" ... ;')
    options: dict[str, str] = {}
    position = 2
    while position < len(tokens) and tokens[position] != ("sign", ";"):
        entry = tokens[position : position + 3]
        if [kind for kind, _ in entry] != ["text", "sign", "text"] or entry[1][1] != "=":
            raise ValueError(f'option {len(options) + 1} must read name="value" (quote numbers and special characters)')
        options[entry[0][1]] = entry[2][1]
        position += 3
    if position == len(tokens):
        raise ValueError("it must end with a semicolon")
    if position < len(tokens) - 1:
        raise ValueError("it must hold one login module only")
    return LoginModule(tokens[0][1].rsplit(".", 1)[-1], options)


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """Yield the kind and the text of each token.

    The kinds are `text` for words and quoted text, `number` for what Java reads as a number, and `sign` for single
    characters.
    """
    for match in _TOKEN.finditer(text):
        if match["quote"] is not None:
            if match["close"] is None:
                raise ValueError(f"a quote is not closed, at character {match.start() + 1}")
            yield "text", _ESCAPE.sub(_unescaped, match["quoted"])
        elif match["blank"] is None:
            kind = next(kind for kind in ("number", "word", "sign") if match[kind] is not None)
            yield ("text" if kind == "word" else kind), match[kind]


def _unescaped(match: re.Match[str]) -> str:
    return chr(int(match[1], 8)) if match[1] else _CONTROLS.get(match[2], match[2])
