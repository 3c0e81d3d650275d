"""CRC-32C (Castagnoli), the checksum of record batches, four bytes a step: no dependency of eosctl has it.

A loop in Python, some ten times slower than reading; its two tables of 65,536 numbers are made on first use.
"""

from __future__ import annotations

from array import array
from functools import cache

_POLYNOMIAL = 0x82F63B78  # reflected
_ALL = 0xFFFFFFFF
_IS_BIG_ENDIAN = array("I", [1]).tobytes()[0] == 0


def crc32c(data: bytes | memoryview) -> int:
    """Compute the checksum of `data`."""
    low, high = _word_tables()
    whole = len(data) & ~3
    words = array("I", bytes(data[:whole]))
    if _IS_BIG_ENDIAN:
        words.byteswap()
    crc = _ALL
    for word in words:
        crc ^= word
        crc = low[crc & 0xFFFF] ^ high[crc >> 16]
    table = _byte_table()
    for byte in data[whole:]:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ _ALL


@cache
def _byte_table() -> list[int]:
    """Compute the CRC of each byte after eight shifts."""
    table = list(range(256))
    for _bit in range(8):
        table = [crc >> 1 ^ _POLYNOMIAL if crc & 1 else crc >> 1 for crc in table]
    return table


@cache
def _word_tables() -> tuple[list[int], list[int]]:
    """Compute the CRC of the lower half of a word after 32 shifts, and of its upper half after 16."""
    table = _byte_table()

    def shift(crc: int) -> int:
        return table[crc & 0xFF] ^ crc >> 8

    high = [shift(shift(half)) for half in range(1 << 16)]
    low = [shift(shift(crc)) for crc in high]
    return low, high
