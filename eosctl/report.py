"""Report: the result of every operation, which every output format projects.

A report holds rows as their kind declares them (`output/rows.py`), and every format is made from these: text and JSON
can't state different facts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum, unique
from typing import Any, TypeVar, cast

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from eosctl.codes import Code
from eosctl.core.findings import Finding, is_bad, is_unseen
from eosctl.errors import EosctlError, ExitCode

Json = object  # whatever json.dumps takes; a recursive alias makes messages unreadable
Row = Mapping[str, Json]
Printed = TypeVar("Printed")


@unique
class Status(StrEnum):
    """The envelope's `status`."""

    OK = "ok"
    FINDINGS = "findings"
    PARTIAL = "partial"
    REFUSED = "refused"
    ERROR = "error"


_STATUS_OF_EXIT = {
    ExitCode.OK: Status.OK,
    ExitCode.FINDINGS: Status.FINDINGS,
    ExitCode.PARTIAL: Status.PARTIAL,
    ExitCode.REFUSED: Status.REFUSED,
}


class Problem(Struct, frozen=True):
    """One entry of the envelope's `errors`, warnings included; its severity is that of its code.

    `demoted`: it is a warning here, although its code is not a warning's. `unseen`: something could not be seen, so
    that a check has no answer.
    """

    code: Code
    message: str
    hint: str | None = None
    unseen: bool = False
    demoted: bool = False

    @property
    def severity(self) -> str:
        """Return `error` or `warning`."""
        return "warning" if self.demoted or self.code.kind == "warning" else "error"

    def as_warning(self) -> Problem:
        """Return the problem as a warning: an error of another command does not make this one fail."""
        return replace(self, demoted=True)

    @property
    def is_unseen(self) -> bool:
        """True if something could not be seen; an error means that a part of a check was not seen either."""
        return self.unseen or self.severity == "error"

    @classmethod
    def of(cls, error: EosctlError) -> Problem:
        """Return the problem that represents `error`."""
        return cls(code=error.code, message=error.message, hint=error.hint)


class Report(Struct, frozen=True):
    """Rows, a summary and problems.

    `kind` is the name of the Kind that declares them (`fence-result`); `data` has members beside `rows` and `summary`;
    `target` is `{"kafka_cluster_id", "group_id"}` as far as known. If the rows are only the first of those written,
    `touches` has all names by kind (`state.audit.KINDS`), for the audit log.
    """

    kind: str
    rows: Sequence[Any] = ()
    summary: Any = {}
    data: Any = {}
    target: Row = {}
    problems: Sequence[Problem] = ()
    exit_code: ExitCode = ExitCode.OK
    touches: Mapping[str, Collection[str]] | None = None

    @property
    def status(self) -> Status:
        """The envelope's status, derived from the exit code."""
        return _STATUS_OF_EXIT.get(self.exit_code, Status.ERROR)

    def rows_of(self, row: type[Printed]) -> Sequence[Printed]:  # noqa: ARG002 - the type is what it is for
        """Return the rows, typed as `row`."""
        return cast("Sequence[Printed]", self.rows)

    def summary_of(self, summary: type[Printed]) -> Printed:
        """Return the summary, typed as `summary`."""
        assert isinstance(self.summary, summary)  # noqa: S101 - the kind says so
        return self.summary

    def data_of(self, data: type[Printed]) -> Printed:
        """Return the other data, typed as `data`."""
        assert isinstance(self.data, data)  # noqa: S101 - the kind says so
        return self.data

    def datum(self, name: str) -> Json:
        """Return a member of the other data; None where this report has none.

        For callers that handle reports of any kind.
        """
        found = self.data.get(name) if isinstance(self.data, Mapping) else getattr(self.data, name, None)
        from msgspec import UNSET  # also `eosctl --help` loads this file

        return None if found is UNSET else plain(found)

    def envelope(self) -> dict[str, object]:
        """Return the command's only JSON document: see "Output" in the README."""
        return {
            "kind": self.kind,
            "version": 1,
            "status": self.status.value,
            "exit_code": int(self.exit_code),
            "target": dict(self.target),
            "data": {"rows": [plain(row) for row in self.rows], "summary": plain(self.summary), **plain(self.data)},
            "errors": [
                {"code": str(p.code), "message": p.message, "hint": p.hint, "severity": p.severity}
                for p in self.problems
            ],
        }


def plain(value: object) -> Any:
    """Convert a row, or a part of a report, to values for `json.dumps`; members that are UNSET are left out."""
    try:
        return to_builtins(value)
    except TypeError:
        return to_builtins(value, enc_hook=_odd_to_builtins)  # which costs as much again


def _odd_to_builtins(value: object) -> object:
    """Convert a value of a type that msgspec does not know: a subclass of str, another mapping or sequence."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise NotImplementedError(f"{type(value)} is nothing that JSON has")


def check_exit_code(findings: Collection[Finding], problems: Iterable[Problem] = (), *, strict: bool) -> ExitCode:
    """Return the exit code of a check: 3 if the answer is no, else 7 if it could not see all, else 0.

    `strict` makes a warning a no, and does nothing else.
    """
    if is_bad(findings, strict=strict):
        return ExitCode.FINDINGS
    is_partial = any(map(is_unseen, findings)) or any(each.is_unseen for each in problems)
    return ExitCode.PARTIAL if is_partial else ExitCode.OK


def error_report(error: EosctlError) -> Report:
    """Return the report of a command that failed before it had rows."""
    return Report(kind="error", problems=(Problem.of(error),), exit_code=error.exit_code)
