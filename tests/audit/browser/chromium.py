"""A headless Chromium of this machine: what it says of a page, and the picture that it makes of it."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

_FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr", "--v=0")


def browser() -> str | None:
    """The program; None where there is none. Debian's package is chromium."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


@dataclass(frozen=True)
class Shown:
    """A page as a browser shows it, in red, green and blue: `said` are the lines of its console."""

    picture: Image
    said: list[str]

    def colors(self) -> set[object]:
        """Return all that are used."""
        return {color for _count, color in self.picture.getcolors(self.picture.width * self.picture.height) or ()}


def show(page: Path, folder: Path, *, dark: bool = False, width: int, height: int) -> Shown:
    """Opens a page, with a profile of its own."""
    from PIL import Image  # the runner asks for the browser before anything is installed

    picture = folder / f"{page.stem}-{width}-{'dark' if dark else 'light'}.png"
    theme = ["--blink-settings=preferredColorScheme=0"] if dark else []
    said = _run(folder, f"--screenshot={picture}", f"--window-size={width},{height}", *theme, page.as_uri())
    with Image.open(picture) as opened:
        return Shown(opened.convert("RGB"), [line for line in said.splitlines() if "CONSOLE" in line])


def _run(folder: Path, *words: str) -> str:
    program = browser()
    assert program is not None
    command = [program, *_FLAGS, f"--user-data-dir={folder / 'profile'}", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stderr
