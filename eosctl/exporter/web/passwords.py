"""Basic authentication with bcrypt: the hash of a repeated password, right or wrong, is computed once.

Right and wrong ones are remembered separately, so that trying wrong ones displaces no right one. An unknown user costs
as much as a known one. Passwords are not kept, only keyed digests of them.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
import threading
from collections.abc import Mapping

import bcrypt

_MOST_SEEN = 100
_LONGEST = 72  # bytes of a password that count for bcrypt, as for htpasswd and Go


class Passwords:
    """Judges the header `Authorization`; may be used by many threads."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._right, self._wrong = dict[bytes, None](), dict[bytes, None]()
        self._decoys = dict[int, str]()
        self._lock, self._computing = threading.Lock(), threading.Lock()
        self.computed = 0

    def allow(self, header: str | None, users: Mapping[str, str]) -> bool:
        """Check whether it names one of the users (name -> bcrypt hash) with the right password."""
        found = _credentials(header)
        if found is None:
            return False
        user, password = found
        hashed = users.get(user)
        compared = hashed or self._decoy(users)
        digest = hashlib.blake2b(key=self._key)
        for part in (user.encode(), compared.encode(), password):
            digest.update(len(part).to_bytes(8, "big") + part)
        seen = digest.digest()
        if seen in self._wrong:
            return False
        if seen not in self._right:
            is_right = self._is_right(password, compared)
            self._keep(seen, self._right if is_right else self._wrong)
            if not is_right:
                return False
        return hashed is not None

    def _is_right(self, password: bytes, hashed: str) -> bool:
        """Compare one password at a time, so that no client can occupy all cores with hashes."""
        with self._computing:
            self.computed += 1
            try:
                return bcrypt.checkpw(password[:_LONGEST], hashed.encode())
            except ValueError:  # a NUL in the password
                return False

    def _decoy(self, users: Mapping[str, str]) -> str:
        """Return a hash of a random password, as expensive as those of the users."""
        cost = max((int(each[4:6]) for each in users.values()), default=10)
        with self._computing:
            if cost not in self._decoys:
                self._decoys[cost] = bcrypt.hashpw(secrets.token_bytes(16), bcrypt.gensalt(cost)).decode()
            return self._decoys[cost]

    def _keep(self, digest: bytes, seen: dict[bytes, None]) -> None:
        with self._lock:
            while len(seen) >= _MOST_SEEN:
                seen.pop(next(iter(seen)))
            seen[digest] = None


def _credentials(header: str | None) -> tuple[str, bytes] | None:
    scheme, _space, text = (header or "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        user, colon, password = base64.b64decode(text.strip(), validate=True).partition(b":")
        return (user.decode("utf-8"), password) if colon else None
    except (binascii.Error, ValueError):
        return None
