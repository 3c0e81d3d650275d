"""What tasks tell of how far they are: added up, never too much, and never an error."""

from __future__ import annotations

from pathlib import Path

from eosctl.migrate.spark.snapshots import RecordCounts


def test_the_tasks_of_a_stage_add_up_and_leave_nothing(tmp_path: Path) -> None:
    with RecordCounts(tmp_path / "counts", 100) as counts:
        assert counts.done() == 0
        first, second = counts.of_task(0), counts.of_task(1)
        first.tell(lambda: 10)
        second.tell(lambda: 20)
        assert counts.done() == 30
        first.tell(lambda: 40, last=True)
        assert counts.done() == 60
        counts.of_task(0).tell(lambda: 5)  # a second attempt begins anew
        assert counts.done() == 25
        second.tell(lambda: 1000, last=True)
        assert counts.done() == 100
    assert list(tmp_path.iterdir()) == []


def test_what_is_told_too_often_is_not_even_counted(tmp_path: Path) -> None:
    with RecordCounts(tmp_path / "counts", 100) as counts:
        task, asked = counts.of_task(0), list[int]()

        def count() -> int:
            asked.append(len(asked))
            return len(asked)

        for _ in range(1000):
            task.tell(count)
        assert 0 < len(asked) < 1000


def test_what_a_killed_run_told_is_forgotten(tmp_path: Path) -> None:
    """A resumed run began its progress where the killed one's had ended."""
    folder = tmp_path / "counts"
    folder.mkdir()
    (folder / "0").write_text("70")
    with RecordCounts(folder, 100) as counts:
        assert counts.done() == 0


def test_a_folder_that_a_task_does_not_see_is_no_error(tmp_path: Path) -> None:
    counts = RecordCounts(tmp_path / "elsewhere", 100)
    counts.of_task(0).tell(lambda: 1)
    assert counts.done() == 0
    with RecordCounts(tmp_path / "counts", 100) as there:
        (there.folder / "0").write_text("")  # just being written
        assert there.done() == 0
