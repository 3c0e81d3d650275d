"""Java's key store format (JKS), PEM and sasl.jaas.config, read as settings and files hold them. Pure.

In a JKS file, certificates stand as they are, and private keys under a password. Source:
`sun.security.provider.JavaKeyStore` and `KeyProtector`, JDK 17. No library is used for it: pyjks needs a C compiler and
has had no release since 2020; it and its fork give a certificate of a cut-off file without its end. `keytool` takes a
second and a Java, and puts the private key into a file.

PEM in settings may be on one line, or have its lines glued together; OpenSSL needs separate lines.

The line of sasl.jaas.config is parsed as Kafka does: quotes, escapes and comments are Java's.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

MAGIC = bytes.fromhex("feedfeed")
_MIGHTY = b"Mighty Aphrodite"
_KEY_PROTECTOR = bytes.fromhex("060a2b060104012a02110101")  # 1.3.6.1.4.1.42.2.17.1.1, the one that JKS knows
_DIGEST_BYTES = 20
_PRIVATE_KEY, _TRUSTED = 1, 2


class KeyEntry(Struct, frozen=True):
    """A private key, still protected, and its certificates in DER, its own first."""

    protected: bytes
    chain: tuple[bytes, ...]
    __repr__ = object.__repr__  # the key is not shown


class JavaKeyStore(Struct, frozen=True):
    """The contents of a JKS file, in its order; certificates in DER."""

    trusted: tuple[bytes, ...]
    keys: tuple[KeyEntry, ...]


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self.position = data, 0

    def take(self, count: int) -> bytes:
        taken = self._data[self.position : self.position + count]
        if len(taken) < count:
            raise ValueError("it is cut off")
        self.position += count
        return taken

    def number(self, width: int = 4) -> int:
        return int.from_bytes(self.take(width))


def read_jks(data: bytes, password: str | None) -> JavaKeyStore:
    """Read the entries of a store; without a password its digest is not checked, as in Java.

    Raises ValueError, whose text says nothing of the password.
    """
    body, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    if password is not None:
        expected = hashlib.sha1(_characters(password) + _MIGHTY + body, usedforsecurity=False).digest()
        if not hmac.compare_digest(expected, digest):
            raise ValueError("the password is wrong, or the file is damaged")
    reader = _Reader(body)
    if reader.take(4) != MAGIC or (version := reader.number()) not in (1, 2):
        raise ValueError("it is no JKS store")
    trusted: list[bytes] = []
    keys: list[KeyEntry] = []
    for _ in range(reader.number()):
        kind = reader.number()
        reader.take(reader.number(2))  # its alias
        reader.take(8)  # when it was made
        if kind == _PRIVATE_KEY:
            protected = reader.take(reader.number())
            keys.append(KeyEntry(protected, tuple(_certificate(reader, version) for _ in range(reader.number()))))
        elif kind == _TRUSTED:
            trusted.append(_certificate(reader, version))
        else:
            raise ValueError(f"it has an entry of kind {kind}, which JKS does not know")
    if reader.position != len(body):
        raise ValueError(f"{len(body) - reader.position} bytes are left over behind its entries")
    return JavaKeyStore(tuple(trusted), tuple(keys))


def _certificate(reader: _Reader, version: int) -> bytes:
    if version == 2:
        reader.take(reader.number(2))  # X.509
    return reader.take(reader.number())


def decrypt_key(entry: KeyEntry, password: str) -> bytes:
    """Decrypt the private key to PKCS 8, DER.

    Raises ValueError for a wrong password, and for another kind of protection.
    """
    algorithm, rest = _element(_element(entry.protected, 0x30)[0], 0x30)
    if not algorithm.startswith(_KEY_PROTECTOR):
        raise ValueError("its private key is protected in a way that JKS does not know")
    sealed, _ = _element(rest, 0x04)
    salt, hidden, check = sealed[:_DIGEST_BYTES], sealed[_DIGEST_BYTES:-_DIGEST_BYTES], sealed[-_DIGEST_BYTES:]
    secret, block, key = _characters(password), salt, bytearray()
    while len(key) < len(hidden):
        block = hashlib.sha1(secret + block, usedforsecurity=False).digest()
        key += bytes(a ^ b for a, b in zip(hidden[len(key) : len(key) + _DIGEST_BYTES], block, strict=False))
    if not hmac.compare_digest(hashlib.sha1(secret + key, usedforsecurity=False).digest(), check):
        raise ValueError("the password of its private key is wrong")
    return bytes(key)


def _characters(password: str) -> bytes:
    return password.encode("utf-16-be")


def _element(data: bytes, tag: int) -> tuple[bytes, bytes]:
    """Split the first DER element off: its content, and the rest of the data."""
    if len(data) < 2 or data[0] != tag:
        raise ValueError("its private key is malformed")
    start, length = 2, data[1]
    if length & 0x80:
        start += length & 0x7F
        length = int.from_bytes(data[2:start])
    if start + length > len(data):
        raise ValueError("its private key is malformed")
    return data[start : start + length], data[start + length :]


_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----\s*([A-Za-z0-9+/=\s]+?)\s*-----END \1-----")
_PADDED = re.compile(rf"\s*{_BLOCK.pattern}")
_TRUSTED_FOR_SERVERS = bytes.fromhex("300c300a06082b06010505070301")
"""X509_CERT_AUX of OpenSSL: trusted for serverAuth. It makes any certificate an anchor, not only a self-signed one."""


def pem_lines(text: str) -> str:
    """Put each PEM block of `text` on lines of its own, 64 characters long; the rest stays as it is.

    Source: `DefaultSslEngineFactory.PemStore`, Kafka 4.3, which treats all blanks inside a block alike.
    """
    return _PADDED.sub(lambda block: "\n" + pem_block(block[1], re.sub(r"\s+", "", block[2])), text).lstrip("\n")


def pem_block(label: str, base64_text: str) -> str:
    """Format one block of PEM."""
    lines = [base64_text[start : start + 64] for start in range(0, len(base64_text), 64)]
    return "\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----"])


def certificates_pem(certificates: Iterable[bytes]) -> str:
    """Convert certificates from DER to PEM."""
    return "".join(pem_block("CERTIFICATE", base64.b64encode(each).decode()) + "\n" for each in certificates)


def anchors_pem(text: str) -> str:
    """Convert the certificates in `text` to OpenSSL's TRUSTED CERTIFICATE, so that each is a trust anchor, as in Java.

    Raises ValueError for a block that is not base64.
    """
    found = (
        base64.b64decode("".join(block[2].split())) for block in _BLOCK.finditer(text) if block[1] == "CERTIFICATE"
    )
    return "".join(
        pem_block("TRUSTED CERTIFICATE", base64.b64encode(each + _TRUSTED_FOR_SERVERS).decode()) + "\n"
        for each in found
    )


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
