"""A reader of what others wrote, and what it is held to; examples are the same ones for the same seed."""

from __future__ import annotations

import hashlib
import resource
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from types import FrameType

from eosctl.errors import EosctlError
from tests.fuzz.mutation import MOST_BYTES, mutated

CORPUS = Path(__file__).parent / "corpus"
"""What was once found; and of 1,500 examples behind the first 500 each that reached a line first."""
SEED = 1


_HOSTILE = (
    *(b"", b"\0" * 64, b"\xff" * 64, b"\x7f" * 64, b"[" * 100_000, b'{"a":' * 100_000, b'["c",' + b"[" * 100_000),
    *(b"9" * 10_000, b'{"partition":' + b"9" * 10_000 + b"}", b'{"offsets":' + b"[" * 100_000, b"\\" * 9_999),
    *(b"\0\x02" + b"\xff\xff\xff\x7f" * 30, b'"' * 9_999, b"- " * 2_000, b"a.1=" * 2_000, b"\n" * 2_000, b"{" * 9_999),
)


class DisagreementError(Exception):
    """Two readers of the same thing, or a reader and what writes it, do not agree."""


class TooSlowError(BaseException):
    """An example took too long. No Exception: readers translate these."""


class TooLargeError(Exception):
    """An example took too much memory."""


@dataclass(frozen=True)
class Reader:
    """`read` returns something or raises EosctlError; `make` gives good bytes for it.

    `most_s` and `most_mib` are CPU time and memory that one example may take, `most_bytes` its own length.
    """

    name: str
    read: Callable[[bytes], object]
    make: Callable[[], Sequence[bytes]]
    most_s: float = 1.0
    most_mib: int = 100
    most_bytes: int = MOST_BYTES

    @cached_property
    def seeds(self) -> Sequence[bytes]:
        """Good bytes."""
        return self.make()

    def corpus(self) -> list[Path]:
        """What is tried first."""
        return sorted((CORPUS / self.name).glob("*"))

    def examples(self, count: int, *, seed: int = SEED) -> Iterator[bytes]:
        """So many damaged ones."""
        for number in range(count):
            chance = Random(f"{self.name} {seed} {number}")  # noqa: S311 - not for secrets
            yield mutated(chance, self.seeds, most=self.most_bytes)

    def fault(self, data: bytes) -> BaseException | None:
        """What is wrong with how an example is read; None where it is read or refused."""
        before = _peak_mib()
        try:
            with _limited(self.most_s):
                self.read(data)
        except EosctlError:
            pass
        except KeyboardInterrupt:
            raise
        except BaseException as exc:  # whatever it is, Arrow's and Rust's panics too
            return exc
        if _peak_mib() - before > self.most_mib:
            return TooLargeError(f"{_peak_mib() - before} MiB")
        return None


@dataclass(frozen=True)
class Found:
    """An example that was neither read nor refused."""

    reader: str
    where: str
    data: bytes
    fault: BaseException

    def __str__(self) -> str:
        shown = repr(self.data if len(self.data) < 2_000 else self.data[:1_000] + b"..." + self.data[-500:])
        lines = "".join(traceback.format_exception(self.fault)[-6:])
        return f"{self.reader}, {self.where}: {shown}\n{lines}"

    def kind(self) -> str:
        """The exception and where it was raised: what is found again and again is one finding."""
        frames = traceback.extract_tb(self.fault.__traceback__)
        at = next((each for each in reversed(frames) if "/eosctl/" in each.filename), frames[-1] if frames else None)
        return f"{type(self.fault).__name__} {at.filename if at else ''}:{at.lineno if at else ''}"

    def keep(self) -> Path:
        """Put it into the corpus."""
        path = CORPUS / self.reader / hashlib.sha256(self.data).hexdigest()[:12]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.data)
        return path


def known_faults(reader: Reader) -> Iterator[Found]:
    """Each that is found by the corpus, or by what is tried on every reader."""
    for path in reader.corpus():
        fault = reader.fault(data := path.read_bytes())
        if fault is not None:
            yield Found(reader.name, f"corpus/{reader.name}/{path.name}", data, fault)
    for data in _HOSTILE:
        fault = reader.fault(data)
        if fault is not None:
            yield Found(reader.name, "hostile to all", data, fault)


def faults(reader: Reader, count: int, *, seed: int = SEED) -> Iterator[Found]:
    """Each that so many examples find; the seeds themselves are no examples, and are to be read."""
    for number, data in enumerate(reader.examples(count, seed=seed)):
        fault = reader.fault(data)
        if fault is not None:
            yield Found(reader.name, f"seed {seed}, example {number}", data, fault)


def _peak_mib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


@contextmanager
def _limited(most_s: float) -> Iterator[None]:
    """Raise TooSlowError where the block takes more CPU time."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise TooSlowError(f"more than {most_s} s")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, most_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
