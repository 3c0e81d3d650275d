"""Loopback ports of a stack, reserved when chosen: its JVMs bind them seconds later, and again after restarts.

They are outside the range from which the kernel assigns ports, where any outgoing connection could take one in between.
A reservation is a link in a folder of the cache: port -> the stack's directory. A link whose directory is gone no
longer counts, so nothing has to be released, not even after a kill.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from eosctl.errors import EosctlError
from eosctl.machine.files import make_folder
from eosctl.sandbox.downloads.jars import locked

_LOWEST, _HIGHEST = 10_000, 65_535
_FEW = 1000
_KERNEL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


TakePorts = Callable[..., list[int]]


def take_ports(count: int, *, folder: Path, owner: Path, candidates: Iterable[int] | None = None) -> list[int]:
    """Reserve the first `count` free ports of `candidates` in `folder`, for as long as `owner` exists.

    Without `candidates` any usable port may be one. Raises EosctlError when there are not so many.
    """
    untried = iter(candidates or from_anywhere(usable_ports(_kernel_range())))
    make_folder(folder)
    with locked(folder / ".lock"):
        _forget_gone(folder)
        taken: list[int] = []
        while len(taken) < count:
            port = next(untried, None)
            if port is None:
                raise EosctlError(f"127.0.0.1 has no {count} free ports", hint=f"Sandboxes have those in {folder}.")
            link = folder / str(port)
            if not link.is_symlink() and _is_free(port):
                link.symlink_to(owner)
                taken.append(port)
    return taken


def usable_ports(kernel_range: tuple[int, int]) -> range:
    """Return the ports that the kernel never assigns by itself; all ports if it leaves only a few."""
    first, last = kernel_range
    below, above = range(_LOWEST, first), range(last + 1, _HIGHEST + 1)
    widest = max(below, above, key=len)
    return widest if len(widest) >= _FEW else range(_LOWEST, _HIGHEST + 1)


def _kernel_range() -> tuple[int, int]:
    """Read the range from which the kernel assigns ports to outgoing connections, and to servers that want any."""
    first, last = _KERNEL_RANGE.read_text(encoding="ascii").split()
    return int(first), int(last)


def from_anywhere(ports: range) -> Iterator[int]:
    """Yield all ports, from a random one on: sandboxes unknown to each other rarely try the same."""
    start = secrets.randbelow(len(ports))
    return (ports[(start + step) % len(ports)] for step in range(len(ports)))


def _forget_gone(folder: Path) -> None:
    """Remove the links of stacks that are gone."""
    for link in folder.iterdir():
        if link.is_symlink() and not link.exists():
            link.unlink()


def _is_free(port: int) -> bool:
    """Decide whether a server could bind the port now; like Java, ignore one that was just closed."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
