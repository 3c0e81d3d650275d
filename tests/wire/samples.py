"""Messages made from the declared layouts: whatever a version can carry, the same ones on every run.

Plain code, as there is nothing to shrink: an engine of examples took most of the time of these tests.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from eosctl.wire import primitives
from eosctl.wire.api import Api
from eosctl.wire.cluster_messages import API_VERSIONS, FIND_COORDINATOR, METADATA
from eosctl.wire.config_messages import DESCRIBE_CONFIGS
from eosctl.wire.group_listing_messages import LIST_GROUPS
from eosctl.wire.group_messages import DESCRIBE_GROUPS
from eosctl.wire.log.fetch_messages import FETCH, LIST_OFFSETS
from eosctl.wire.log_dir_messages import DESCRIBE_LOG_DIRS
from eosctl.wire.producer_messages import DESCRIBE_PRODUCERS, WRITE_TXN_MARKERS
from eosctl.wire.sasl_messages import SASL_AUTHENTICATE, SASL_HANDSHAKE
from eosctl.wire.schema import Array, Struct, WireType
from eosctl.wire.transaction_listing_messages import LIST_TRANSACTIONS
from eosctl.wire.transaction_messages import DESCRIBE_TRANSACTIONS, INIT_PRODUCER_ID

APIS: tuple[Api[Any, Any], ...] = (
    API_VERSIONS,
    SASL_HANDSHAKE,
    SASL_AUTHENTICATE,
    METADATA,
    FIND_COORDINATOR,
    INIT_PRODUCER_ID,
    LIST_TRANSACTIONS,
    DESCRIBE_TRANSACTIONS,
    DESCRIBE_PRODUCERS,
    WRITE_TXN_MARKERS,
    DESCRIBE_GROUPS,
    LIST_GROUPS,
    LIST_OFFSETS,
    FETCH,
    DESCRIBE_LOG_DIRS,
    DESCRIBE_CONFIGS,
)
VERSIONS = [(api, version) for api in APIS for version in range(api.oldest, api.newest + 1)]
_LAST_OF_ITS_LENGTH = "\x7f\u07ff\uffff\U0010ffff"  # in UTF-8: of one byte, two, three and four
_CHARACTERS = f"\0a9ü€\ud7ff\ue000\U0001f600{_LAST_OF_ITS_LENGTH}"


def _integer(bits: int) -> Callable[[random.Random], int]:
    least, most = -(1 << bits - 1), (1 << bits - 1) - 1
    return lambda chance: chance.choice(
        (least, -1, 0, 1, most, chance.randint(least, most), chance.randint(least, most))
    )


def _text(chance: random.Random) -> str:
    """Once in nine times one whose compact length takes two bytes."""
    size = chance.randrange(9)
    return "".join(chance.choices(_CHARACTERS, k=size)) if size else chance.choice(("", "x" * 130))


def _bytes(chance: random.Random) -> bytes:
    return chance.randbytes(chance.randrange(9))


def _or_none(make: Callable[[random.Random], Any]) -> Callable[[random.Random], Any]:
    return lambda chance: make(chance) if chance.randrange(4) else None


_PRIMITIVES: list[tuple[WireType, Callable[[random.Random], Any]]] = [
    (primitives.INT8, _integer(8)),
    (primitives.INT16, _integer(16)),
    (primitives.INT32, _integer(32)),
    (primitives.INT64, _integer(64)),
    (primitives.BOOL, lambda chance: chance.random() < 0.5),
    (primitives.ID, lambda chance: uuid.UUID(bytes=chance.randbytes(16) if chance.randrange(4) else bytes(16))),
    (primitives.STRING, _text),
    (primitives.NULLABLE_STRING, _or_none(_text)),
    (primitives.BYTES, _bytes),
    (primitives.RECORDS, _or_none(lambda chance: memoryview(_bytes(chance)))),
]


def _maker(wire_type: WireType, version: int) -> Callable[[random.Random], Any]:
    """What makes any value of a type in a version."""
    if isinstance(wire_type, Struct):
        return _message_maker(wire_type, version)
    if isinstance(wire_type, Array):
        one = _maker(wire_type.element, version)
        several = lambda chance: tuple(one(chance) for _ in range(chance.choice((0, 1, 1, 2, 3))))  # noqa: E731
        return _or_none(several) if wire_type.nullable else several
    return next(make for known, make in _PRIMITIVES if known is wire_type)


def _message_maker(layout: Struct[Any], version: int) -> Callable[[random.Random], Any]:
    """Fields that the version does not carry have their default."""
    carried = {name: _maker(field.type, version) for name, field in layout.fields.items() if field.carried(version)}
    return lambda chance: layout.message(**{name: make(chance) for name, make in carried.items()})


def messages(layout: Struct[Any], version: int, count: int) -> Iterator[Any]:
    """So many messages of a layout."""
    make, chance = _message_maker(layout, version), random.Random(f"{layout.message.__name__}{version}")  # noqa: S311
    return (make(chance) for _ in range(count))
