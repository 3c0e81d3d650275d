"""The files of `--report`: refused before the work where they could not be written, and written whole."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from uuid import uuid4

from msgspec.structs import replace

from eosctl.errors import EosctlError, ExitCode, UsageError
from eosctl.machine.files import followed
from eosctl.report import Problem, Report
from eosctl.state.backups import write_lines


def require_writable_page(file: str | Path) -> Path:
    """Return the page's path; raise UsageError if it could not be written after the work, which may take an hour."""
    path = Path(file).expanduser()
    directory = path.absolute().parent
    if not directory.is_dir():
        raise UsageError(f"--report {file}: there is no directory {directory}", hint="Make it first.")
    try:
        target = followed(path)
        if target.exists() and not target.is_file():
            raise UsageError(f"--report {file} is no regular file", hint="Name another file.")
        draft = target.with_name(f".{uuid4().hex}.new")  # as `write_whole` makes one
        draft.open("xb").close()
        draft.unlink()
    except OSError as exc:
        why = exc.strerror or str(exc)
        raise UsageError(f"--report {file} can't be written: {why}", hint="Name a file that you may write.") from exc
    return path


def with_page(report: Report, path: Path, lines: Iterable[str]) -> Report:
    """Write the page and return the report; a failure to write becomes a problem beside the result."""
    try:
        write_lines(path, lines)
    except EosctlError as exc:
        exit_code = ExitCode.PARTIAL if report.exit_code is ExitCode.OK else report.exit_code
        return replace(report, problems=[*report.problems, Problem.of(exc)], exit_code=exit_code)
    return report
