"""Java's own key store format (JKS), read: certificates stand in it as they are, private keys under a password. Pure.

Source: `sun.security.provider.JavaKeyStore` and `KeyProtector`, JDK 17. No library is taken for it: pyjks needs a C
compiler and has had no release since 2020; it and its fork give a certificate of a cut-off file without its end.
`keytool` takes a second and a Java, and puts the private key into a file.
"""

from __future__ import annotations

import hashlib
import hmac

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
