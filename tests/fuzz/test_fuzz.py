"""Every reader of what others wrote: 500 damaged examples each, those of the corpus first; and the fuzzer itself."""

from __future__ import annotations

import itertools
import re
import resource

import pytest

from eosctl.errors import EosctlError, UsageError
from tests.fuzz.command import run
from tests.fuzz.reader import CORPUS, Reader, faults, known_faults
from tests.fuzz.readers import READERS

EXAMPLES = 500
MOST_SHOWN = 3
pytestmark = pytest.mark.filterwarnings("ignore:PKCS#12 bundle could not be parsed as DER")


@pytest.mark.parametrize("name", READERS)
def test_what_others_wrote_is_read_or_refused(name: str) -> None:
    reader = READERS[name]
    found = list(itertools.islice(itertools.chain(known_faults(reader), faults(reader, EXAMPLES)), MOST_SHOWN))
    assert not found, "\n".join(map(str, found))


@pytest.mark.parametrize("name", READERS)
def test_good_bytes_are_read(name: str) -> None:
    """Where all of them were refused, examples would show nothing."""
    reader, taken = READERS[name], 0
    for seed in reader.seeds:
        try:
            reader.read(seed)
        except EosctlError:
            continue
        taken += 1
    assert taken > 0


def test_the_corpus_is_of_readers_that_are_there() -> None:
    assert {path.name for path in CORPUS.iterdir()} <= READERS.keys()


def _raises(data: bytes) -> object:
    if b"\xff" in data:
        raise UsageError("no")
    return int(data)


def _takes_long(data: bytes) -> object:
    while b"9" in data:
        pass
    return None


def _takes_memory(data: bytes) -> object:
    most_so_far = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    return len(b"x" * (most_so_far + (200 << 20))) if b"9" in data else None


@pytest.mark.parametrize(
    ("read", "error", "most_s"),
    [(_raises, "ValueError", 60), (_takes_long, "TooSlowError", 0.05), (_takes_memory, "TooLargeError", 60)],
)
def test_the_fuzzer_sees_errors_and_what_takes_too_long_or_too_much(read: object, error: str, most_s: float) -> None:
    reader = Reader("planted", read, lambda: [b"1", b"22"], most_s=most_s, most_mib=50)  # type: ignore[arg-type]
    found = next(faults(reader, 500))
    assert type(found.fault).__name__ == error
    assert type(reader.fault(found.data)).__name__ == error
    assert reader.fault(b"1") is None
    assert re.match(r"planted, seed 1, example \d+: ", str(found))


def test_the_same_seed_has_the_same_examples() -> None:
    reader = READERS["journal"]
    first, again, other = (list(reader.examples(20, seed=seed)) for seed in (1, 1, 2))
    assert first == again != other


def test_a_reader_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exc:
        run(["nothing"])
    assert exc.value.code == 2
    assert "nothing" in capsys.readouterr().err
