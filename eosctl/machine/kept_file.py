"""Files that the cache keeps: made once, and never a reason for a failure."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from eosctl.machine.files import open_own, own_folder, write_whole


class KeptFile(Struct, frozen=True):
    """The file of this `name` in `folder`. Its size is part of its file name, so that a truncated file is ignored.

    A file that others could have made or can change is ignored too: a JVM runs its contents.
    """

    folder: Path
    name: str
    suffix: str

    def path(self) -> Path | None:
        """Return the path of the file; None if it does not exist yet."""
        for path in self.folder.glob(f"{self.name}-*{self.suffix}"):
            with suppress(OSError):
                own_folder(self.folder)
                with open(open_own(path), "rb") as file:
                    if path.stem == f"{self.name}-{os.fstat(file.fileno()).st_size}":
                        return path
        return None

    def keep(self, draft: Path) -> None:
        """Copy `draft` into the cache unless a file is there already.

        It is copied completely or not at all; a failure is silent.
        """
        if self.path() is not None:
            return
        with suppress(OSError):
            import shutil  # its codecs are only needed to make a file

            path = own_folder(self.folder) / f"{self.name}-{draft.stat().st_size}{self.suffix}"
            with draft.open("rb") as source:
                write_whole(path, lambda target: shutil.copyfileobj(source, target, 1 << 20))
