"""The journal that a killed run is continued from: what it holds, whose it is, and that one process has it at once."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from threading import Timer

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from eosctl.app import App
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError, RefusedError
from eosctl.state.journal import EndEntry, Journal, journal_of
from eosctl.target import Target
from tests.fakes.clock import PLENTY_S, FakeTime

HOLDS = """
import sys
from pathlib import Path
from eosctl.deadline import Clock
from eosctl.state.journal import EndEntry, Journal
with Journal(Path(sys.argv[1]), Clock()).hold("it"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journals" / "it.ndjson", FakeTime(1.5).clock())


def test_what_was_written_is_read_and_who_held_it_is_no_entry(journal: Journal) -> None:
    assert journal.entries() == []
    with journal.hold("it"):
        journal.write("begin", name="ä")
        journal.write("end")
    assert journal.entries() == [
        {"event": "begin", "time_ms": 1500, "name": "ä"},
        {"event": "end", "time_ms": 1500},
    ]
    assert journal.path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("left", [b'{"event": "done", "st', b"\xff\xfe", b"[1, 2]", b"7"])
def test_what_a_crash_cut_off_is_no_entry_and_spoils_none(journal: Journal, left: bytes) -> None:
    journal.write("begin")
    with journal.path.open("ab") as file:
        file.write(left)
    journal.write("resume")
    assert [entry["event"] for entry in journal.entries()] == ["begin", "resume"]


@dataclass(frozen=True, slots=True)
class Done:
    step: str
    time_ms: int
    workers: tuple[str, ...] = ()


def test_entries_are_read_as_values_of_their_classes(journal: Journal) -> None:
    """What an older version left out has its default; events that nobody reads again are passed over."""
    with journal.hold("it"):
        journal.write("begin")
        journal.write("done", step="a")
        journal.write("done", step="b", workers=["w"], later="x")
        journal.write("end")
    kinds: dict[str, type[Done | EndEntry]] = {"done": Done, "end": EndEntry}
    assert journal.read(kinds) == [Done("a", 1500), Done("b", 1500, ("w",)), EndEntry(1500)]


@pytest.mark.parametrize(
    ("members", "wrong"),
    [
        ({}, "it has no 'step'"),
        ({"step": "b", "workers": [1]}, r"workers\[0\]: expected str, got int"),
        ({"step": "b", "workers": ["HALF"]}, "a text in it has half of a surrogate pair"),
        ({"step": "b", "HALF": 1}, "a text in it has half of a surrogate pair"),
    ],
)
def test_an_entry_that_is_not_what_it_was_is_named(journal: Journal, members: dict[str, object], wrong: str) -> None:
    """It used to be a KeyError with a traceback."""
    journal.write("done", step="a")
    journal.write("done", **members)
    journal.path.write_text(journal.path.read_text().replace("HALF", "\\ud800"))
    with pytest.raises(EosctlError, match=rf"cannot read .*it\.ndjson: entry 2 \(done\): {wrong}$") as unreadable:
        journal.read({"done": Done})
    assert unreadable.value.hint


def test_a_journal_that_cannot_be_read_is_not_an_empty_one(journal: Journal) -> None:
    """Else a run that was cut off would begin anew."""
    journal.path.mkdir(parents=True)
    with pytest.raises(EosctlError, match="cannot read") as unreadable:
        journal.entries()
    assert unreadable.value.hint


def test_a_last_entry_that_cannot_be_written_is_a_warning(journal: Journal) -> None:
    """What the run did is done; an error would say that it is not."""
    journal.path.mkdir(parents=True)
    with pytest.raises(EosctlError, match="cannot write"):
        journal.write("begin")
    (problem,) = journal.close()
    assert (problem.code, problem.severity) == ("journal_not_closed", "warning")


@pytest.mark.parametrize("hold", ["{}", '{"pid": 1}', '{"pid": 1, "time_ms": "x"}', '{"pid": {}, "time_ms": 1}'])
def test_who_holds_it_is_unknown_where_the_line_does_not_tell(journal: Journal, hold: str) -> None:
    """It used to be a KeyError or a TypeError of the one who looks."""
    with journal.hold("it"):
        journal.path.write_text(f'{{"event": "hold", {hold[1:]}\n'.replace(", }", "}"))
        assert journal.holder() == "process unknown"


def test_very_deep_json_is_no_entry(journal: Journal) -> None:
    journal.path.parent.mkdir()
    journal.path.write_bytes(b"[" * 100_000 + b"\n")
    assert journal.entries() == []


@given(cut=st.integers(0, 200))
def test_a_journal_that_was_cut_off_keeps_its_whole_lines(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    journal = Journal(tmp_path_factory.mktemp("cut") / "it.ndjson", FakeTime(1.5).clock())
    left = b"".join(b'{"event": "e", "number": %d}\n' % number for number in range(3))[:cut]
    journal.path.write_bytes(left)
    kept = len([line for line in left.split(b"\n") if line.endswith(b"}")])
    assert len(journal.entries()) == kept
    journal.write("end")
    assert [entry["event"] for entry in journal.entries()] == ["e"] * kept + ["end"]


def test_one_process_holds_it_and_the_lock_goes_with_the_process(journal: Journal) -> None:
    """Another one is told whom to wait for, and waits only if it is given time."""
    assert journal.holder() is None
    other = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(journal.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        told = rf"another eosctl is at work on group g \(process {other.pid}, since 20.*; nothing was written"
        with pytest.raises(RefusedError, match=told), journal.hold("group g"):
            pass
        with pytest.raises(RefusedError, match=told):
            journal.refuse_held("group g")
        with pytest.raises(RefusedError, match=told), journal.hold("group g", until=Deadline.after(0.3)):
            pass
        assert str(journal.holder()).startswith(f"process {other.pid}, since 20")
        Timer(0.3, other.kill).start()
        with journal.hold("group g", until=Deadline.after(PLENTY_S)):
            assert str(journal.holder()).startswith(f"process {os.getpid()}, ")
    finally:
        other.kill()
        other.communicate(timeout=PLENTY_S)
    assert journal.holder() is None
    journal.refuse_held("group g")
    with journal.hold("group g"):
        assert str(journal.holder()).startswith(f"process {os.getpid()}, ")


def test_a_journal_is_of_one_subject_of_one_group_of_one_cluster(tmp_path: Path) -> None:
    app = App(Target(group_id="g"), Deadline.after(1), tmp_path)
    other_group = replace(app, target=Target(group_id="h"))
    same = [journal_of(app, "upgrade", "a/b", cluster_id="k").path for _ in range(2)]
    assert same[0] == same[1]
    assert same[0].parent == tmp_path / "journals"
    others = [
        journal_of(app, "upgrade", "a/b", cluster_id="other"),
        journal_of(other_group, "upgrade", "a/b", cluster_id="k"),
        journal_of(app, "upgrade", "a_b", cluster_id="k"),
        journal_of(app, "offsets-switch", "a/b", cluster_id="k"),
    ]
    assert len({same[0], *(journal.path for journal in others)}) == 5
