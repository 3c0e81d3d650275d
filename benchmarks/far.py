"""Brokers and workers that are 20 ms away: on loopback, behind ports from which everything goes on after a delay.

A round trip takes RTT_MS = 20 ms, half of it each way. A new connection takes one more before its first bytes arrive,
as it does where SYN has to travel. Throughput is not limited: each chunk goes on when its own time has come, whatever
is before it.

`far_stack` is what a benchmark needs. Whoever works on the far side stays near: workers and brokers know each other by
listeners without a delay.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace

from eosctl.sandbox.downloads.jars import cache_dir
from eosctl.sandbox.login import SUPER_USER, SecureListener
from eosctl.sandbox.servers.process import take_ports
from eosctl.sandbox.settings import StackSpec
from eosctl.sandbox.stack import Stack

RTT_MS = 20
_CHUNK = 1 << 16
_T = TypeVar("_T")


class Distance:
    """Loopback ports, each of which leads to another address; the round trip there takes `rtt_ms`."""

    def __init__(self, rtt_ms: float = RTT_MS) -> None:
        self._rtt_s = rtt_ms / 1000
        self._loop = asyncio.new_event_loop()
        self._addresses: dict[int, str] = {}
        self._servers: list[asyncio.Server] = []
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def port(self, address: str = "") -> int:
        """Listen on a new port, which leads to `address` (host:port); return the port."""
        server = self._run(asyncio.start_server(self._serve, "127.0.0.1", 0, limit=_CHUNK))
        self._servers.append(server)
        port: int = server.sockets[0].getsockname()[1]
        self._addresses[port] = address
        return port

    def lead(self, port: int, address: str) -> None:
        """Lead connections to `port` to `address` (host:port) from now on."""
        self._addresses[port] = address

    def close(self) -> None:
        """End every connection and listen no more."""
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        for server in self._servers:
            server.close()
        under_way = asyncio.all_tasks() - {asyncio.current_task()}
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)

    def _run(self, work: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _serve(self, near: asyncio.StreamReader, to_near: asyncio.StreamWriter) -> None:
        arrives_s = self._loop.time() + self._rtt_s
        port = to_near.get_extra_info("sockname")[1]
        host, _colon, number = self._addresses[port].rpartition(":")
        try:
            far, to_far = await asyncio.open_connection(host, int(number), limit=_CHUNK)
        except (OSError, ValueError):  # nobody is there, or the port leads nowhere yet
            to_near.close()
            return
        with suppress(asyncio.CancelledError):  # by `close`
            await asyncio.gather(self._pass_on(near, to_far, arrives_s), self._pass_on(far, to_near, 0))
        for writer in (to_far, to_near):
            writer.close()

    async def _pass_on(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, open_s: float) -> None:
        """Pass on one direction until its end; what came before `open_s` came then."""
        queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def take() -> None:
            data = b"first"
            while data:
                try:
                    data = await source.read(_CHUNK)
                except OSError:
                    data = b""
                queue.put_nowait((max(self._loop.time(), open_s) + self._rtt_s / 2, data))

        taking = asyncio.create_task(take())
        with suppress(OSError):
            while True:
                at_s, data = await queue.get()
                await asyncio.sleep(max(at_s - self._loop.time(), 0))
                if not data:
                    target.write_eof()
                    break
                target.write(data)
                await target.drain()
        await taking


@dataclass(frozen=True, slots=True)
class FarStack:
    """A stack that is reached over a distance, by `bootstrap_servers` with `command_config`, empty for plaintext.

    `connect_map` has each worker's advertised URL and the one that leads there.
    """

    stack: Stack
    bootstrap_servers: str
    command_config: str
    connect_map: Mapping[str, str]

    def options(self) -> list[str]:
        """Return eosctl's options of the brokers and workers."""
        login = ["--command-config", self.command_config] if self.command_config else []
        pairs = [word for pair in self.connect_map.items() for word in ("--connect-map", "=".join(pair))]
        return ["-b", self.bootstrap_servers, *login, *pairs]


@contextmanager
def far_stack(spec: StackSpec, directory: Path, *, secure: bool, rtt_ms: float = RTT_MS) -> Iterator[FarStack]:
    """Start a stack below `directory`, `rtt_ms` away until the block ends.

    With `secure` it is reached by TLS with SCRAM-SHA-512, as a super user; such a stack has one broker.
    """
    distance = Distance(rtt_ms)
    ports = [distance.port() for _ in range(spec.brokers)]
    stack = None
    try:
        stack = _up_secure(spec, directory, ports) if secure else _up_plain(spec, directory, ports)
        for port, node in zip(ports, stack.state.of_kind("broker"), strict=True):
            distance.lead(port, str(node.secure_address if secure else node.forwarded_address))
        urls = [node.address for node in stack.state.of_kind("worker")]
        ways = {url: f"http://127.0.0.1:{distance.port(url.partition('://')[2])}" for url in urls}
        login = stack.state.command_configs[SUPER_USER] if secure else ""
        yield FarStack(stack, ",".join(f"127.0.0.1:{port}" for port in ports), login, ways)
    finally:
        if stack is not None:
            stack.down()
        distance.close()


def _up_plain(spec: StackSpec, directory: Path, ports: list[int]) -> Stack:
    return Stack.up(replace(spec, forwarded=tuple(ports)), directory, name="far", environ=os.environ)


def _up_secure(spec: StackSpec, directory: Path, ports: list[int]) -> Stack:
    """Start one broker that advertises the port of the distance as that of its secure listener."""
    [port] = ports
    ports_taken = cache_dir(os.environ).absolute() / "ports"  # where other sandboxes look
    client, *_rest = taken = take_ports(3, folder=ports_taken, owner=directory.parent)
    advertised = f"PLAINTEXT://127.0.0.1:{client},SASL_SSL://127.0.0.1:{port}"
    config = {**spec.broker_config, "advertised.listeners": advertised}
    spec = replace(spec, secure=SecureListener.with_users(()), broker_config=config)

    def chosen(count: int, **where: Any) -> list[int]:
        found, taken[:] = taken[:count], taken[count:]
        return found or take_ports(count, **where)

    return Stack.up(spec, directory, name="far", environ=os.environ, take_ports=chosen)
