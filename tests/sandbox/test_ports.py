"""Ports of a stack are its own: from the choice on, over restarts, and not one longer than it exists."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from eosctl.errors import EosctlError
from eosctl.sandbox.servers.process import from_anywhere, take_ports, usable_ports


@pytest.fixture
def owner(tmp_path: Path) -> Path:
    """A stack's directory."""
    (tmp_path / "stack").mkdir()
    return tmp_path / "stack"


@pytest.mark.parametrize(
    ("kernel", "usable"),
    [
        ((32768, 60999), range(10_000, 32768)),  # Linux as it comes
        ((9000, 40000), range(40001, 65536)),
        ((1024, 65535), range(10_000, 65536)),  # leaves nothing: a port may be taken, and the stack starts anew
    ],
)
def test_the_kernel_gives_them_to_nobody(kernel: tuple[int, int], usable: range) -> None:
    """Any outgoing connection could take a port between its choice and the start of the broker."""
    assert usable_ports(kernel) == usable


def test_nobody_gets_one_twice(tmp_path: Path, owner: Path) -> None:
    """Many at once, as sessions side by side: two sandboxes could choose the same port before either was up."""
    same = range(20_000, 30_000)

    def take(_number: int) -> list[int]:
        return take_ports(5, folder=tmp_path / "ports", owner=owner, candidates=same)

    with ThreadPoolExecutor(8) as pool:
        taken = [port for ports in pool.map(take, range(16)) for port in ports]
    assert len(taken) == len(set(taken)) == 80


def test_they_are_kept_while_the_directory_is_there(tmp_path: Path, owner: Path) -> None:
    folder = tmp_path / "ports"
    take_ports(3, folder=folder, owner=owner)
    assert len(list(folder.glob("[0-9]*"))) == 3
    take_ports(1, folder=folder, owner=tmp_path)
    assert len(list(folder.glob("[0-9]*"))) == 4
    owner.rmdir()
    (port,) = take_ports(1, folder=folder, owner=tmp_path)
    left = {int(link.name): link.readlink() for link in folder.glob("[0-9]*")}
    assert (len(left), left[port]) == (2, tmp_path)


def test_one_that_somebody_listens_on_is_not_chosen(tmp_path: Path, owner: Path) -> None:
    folder = tmp_path / "ports"
    first, second = take_ports(2, folder=tmp_path / "others", owner=owner)
    with socket.create_server(("127.0.0.1", first)):
        assert take_ports(1, folder=folder, owner=owner, candidates=[first, second]) == [second]
    with socket.create_server(("0.0.0.0", first)), pytest.raises(EosctlError):  # noqa: S104 - has 127.0.0.1 as well
        take_ports(1, folder=folder, owner=owner, candidates=[first])
    assert take_ports(1, folder=folder, owner=owner, candidates=[first]) == [first]


def test_a_port_that_was_just_closed_is_free(tmp_path: Path, owner: Path) -> None:
    """A broker binds its port again after a restart, whatever its former connections wait for."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            accepted, _address = server.accept()
            accepted.close()  # the server's side waits (TIME_WAIT)
            client.recv(1)
    assert take_ports(1, folder=tmp_path / "ports", owner=owner, candidates=[port]) == [port]


def test_sandboxes_that_know_nothing_of_each_other_try_others_first() -> None:
    ports = range(10_000, 32_768)
    assert len({next(from_anywhere(ports)) for _ in range(20)}) > 15
    assert sorted(from_anywhere(ports)) == list(ports)


def test_too_many_are_refused(tmp_path: Path, owner: Path) -> None:
    with pytest.raises(EosctlError, match=r"no 3 free ports"):
        take_ports(3, folder=tmp_path / "ports", owner=owner, candidates=[20_000, 20_001])
