"""A headless Chromium of this machine: what it says of a page, and the picture that it makes of it."""

from __future__ import annotations

import shutil
import struct
import subprocess
import zlib
from dataclasses import dataclass
from pathlib import Path

_FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr", "--v=0")
_BYTES_A_PIXEL = {2: 3, 6: 4}  # color type of a PNG -> bytes


def browser() -> str | None:
    """The program; None where there is none. Debian's package is chromium."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


@dataclass(frozen=True)
class Picture:
    """The pixels of a PNG, row by row, as red, green and blue."""

    width: int
    height: int
    rows: tuple[tuple[tuple[int, ...], ...], ...]

    @property
    def colors(self) -> set[tuple[int, ...]]:
        """All that are used."""
        return {pixel for row in self.rows for pixel in row}


@dataclass(frozen=True)
class Shown:
    """A page as a browser shows it: `said` are the lines of its console."""

    picture: Picture
    said: list[str]


def show(page: Path, folder: Path, *, dark: bool = False, width: int, height: int) -> Shown:
    """Opens a page, with a profile of its own."""
    picture = folder / f"{page.stem}-{width}-{'dark' if dark else 'light'}.png"
    theme = ["--blink-settings=preferredColorScheme=0"] if dark else []
    said = _run(folder, f"--screenshot={picture}", f"--window-size={width},{height}", *theme, page.as_uri())
    return Shown(read_png(picture.read_bytes()), [line for line in said.splitlines() if "CONSOLE" in line])


def _run(folder: Path, *words: str) -> str:
    program = browser()
    assert program is not None
    command = [program, *_FLAGS, f"--user-data-dir={folder / 'profile'}", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stderr


def read_png(data: bytes) -> Picture:
    """The picture; only what Chromium writes is understood: eight bits, not interlaced."""
    chunks: dict[bytes, bytes] = {}
    at = 8
    while at < len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        kind = data[at + 4 : at + 8]
        chunks[kind] = chunks.get(kind, b"") + data[at + 8 : at + 8 + size]
        at += size + 12
    width, height, _depth, color_type = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    step = _BYTES_A_PIXEL[color_type]
    raw, line = zlib.decompress(chunks[b"IDAT"]), bytearray(width * step)
    rows = []
    for number in range(height):
        start = number * (width * step + 1)
        line = _unfiltered(raw[start], bytearray(raw[start + 1 : start + 1 + width * step]), line, step)
        rows.append(tuple(tuple(line[x : x + 3]) for x in range(0, len(line), step)))
    return Picture(width, height, tuple(rows))


def _unfiltered(kind: int, line: bytearray, above: bytearray, step: int) -> bytearray:
    """PNG's five ways to write a line as differences from its neighbours."""
    for at in range(len(line)):
        left = line[at - step] if at >= step else 0
        up, corner = above[at], above[at - step] if at >= step else 0
        line[at] = (line[at] + (0, left, up, (left + up) // 2, _paeth(left, up, corner))[kind]) % 256
    return line


def _paeth(left: int, up: int, corner: int) -> int:
    guess = left + up - corner
    return min((left, up, corner), key=lambda each: abs(guess - each))
