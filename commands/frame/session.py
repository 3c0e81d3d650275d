"""Session: the surroundings of one invocation; the real process fills it from its own, tests by hand.

`eosctl --help` makes a session too, so everything that costs an import is imported where it is used.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from eosctl.foreign import printable

if TYPE_CHECKING:
    from eosctl.app import App
    from eosctl.connect.session import ConnectSession
    from eosctl.deadline import Clock, OnEvent, Stopwatch
    from eosctl.kafka.session import KafkaSession
    from eosctl.output.log_file import LogFile
    from eosctl.profiles.sources import ConfigFile
    from eosctl.report import Problem, Report
    from eosctl.state.audit import AuditLog
    from eosctl.target import Target

DEFAULT_TIMEOUT_S = 60.0
OUTPUTS = ("text", "wide", "json", "yaml", "ndjson")


class Session:
    """`flags` are the global options as given anywhere on the command line; `doors` replace App's open_* in tests.

    `write_begun` says that the audit log knows of the command already; `shown_problems` are those of a plan, which
    stderr has.
    """

    def __init__(
        self,
        *,
        environ: Mapping[str, str] | None = None,
        clock: Clock | None = None,
        can_ask: bool | None = None,
        doors: Mapping[str, Any] | None = None,
        on_event: OnEvent | None = None,
    ) -> None:
        self.environ = os.environ if environ is None else environ
        self.flags: dict[str, Any] = {}
        self.write_begun = False
        self.shown_problems: list[Problem] = []
        self._clock, self._can_ask, self._doors = clock, can_ask, dict(doors or {})
        self._on_event = on_event
        self._target: Target | None = None
        self._stopwatch: Stopwatch | None = None
        self._log: LogFile | None = None
        self._may_log = True
        self._printed_rows = False
        self._kafka: KafkaSession | None = None
        self._rest: ConnectSession | None = None

    @property
    def output(self) -> str:
        """The requested output format."""
        return str(self.flags.get("output", "text"))

    @property
    def verbosity(self) -> int:
        """The number of times `-v` was given."""
        return int(self.flags.get("verbose", 0))

    def may_ask(self) -> bool:
        """Decide whether the user can be asked: stdin is a terminal."""
        return sys.stdin.isatty() if self._can_ask is None else self._can_ask

    def color(self, stream: IO[str]) -> bool:
        """Decide whether `stream` gets colours: a terminal, and neither --no-color, NO_COLOR nor TERM=dumb."""
        if self.flags.get("no_color") or self.environ.get("NO_COLOR") or self.environ.get("TERM") == "dumb":
            return False
        return stream.isatty()

    def quiet_progress(self) -> None:
        """Remove a live progress display from the terminal before anything else is printed."""
        close = getattr(self._on_event, "close", None)
        if close is not None:
            close()

    def state_dir(self) -> Path:
        """Return the directory of backups and journals: $XDG_STATE_HOME/eosctl, else ~/.local/state/eosctl."""
        base = self.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
        return Path(base) / "eosctl"

    def log(self) -> LogFile | None:
        """Open the file of --log-file, once; return None without one. Raise EosctlError, once, if that fails."""
        path = self.flags.get("log_file") or self.environ.get("EOSCTL_LOG_FILE")
        if self._log is None and path and self._may_log:
            from eosctl.deadline import Clock
            from eosctl.output.log_file import LogFile

            self._may_log = False
            self._log = LogFile(Path(path).expanduser(), self._clock or Clock())
        return self._log

    def row_printer(self) -> Callable[[object], None]:
        """Return a printer of rows as they come: for NDJSON only, as the other formats need all rows."""
        if self.output != "ndjson":
            return _print_nothing
        from eosctl.output.documents import write_ndjson
        from eosctl.report import Report

        def print_row(row: object) -> None:
            write_ndjson(Report(kind="row", rows=[row]), sys.stdout)
            sys.stdout.flush()
            self._printed_rows = True

        return print_row

    def change_printer(self) -> Callable[[object], None]:
        """Return a printer of changes that go on until interrupted: their `line` as text, else as `row_printer`."""
        return _print_line if self.output in ("text", "wide") else self.row_printer()

    def may_steer(self, stream: IO[str]) -> bool:
        """Decide whether `stream` can be a screen: a terminal that is not dumb, for text output."""
        return stream.isatty() and self.environ.get("TERM") != "dumb" and self.output in ("text", "wide")

    def without_printed_rows(self, report: Report) -> Report:
        """Return the report without the rows that are printed already."""
        from msgspec.structs import replace

        return replace(report, rows=()) if self._printed_rows else report

    def close(self) -> None:
        """Close the log file and the connections to brokers and workers; safe to call twice."""
        if self._kafka is not None:
            self._kafka.close()
        if self._rest is not None:
            self._rest.close()
        if self._log is not None:
            self._log.close()
            self._log = None

    def messages(self) -> OnEvent:
        """Return the listener that prints messages of operations on stderr and into the log file."""
        from eosctl.deadline import Clock
        from eosctl.output.progress import ProgressMessages

        if self._on_event is None:
            clock, verbose, log = self._clock or Clock(), self.verbosity > 0, self.log()
            self._on_event = ProgressMessages(sys.stderr, clock, live=self.color(sys.stderr), verbose=verbose)
            if log is not None:
                from eosctl.output.log_file import Both

                self._on_event = Both(self._on_event, ProgressMessages(log, clock, live=False, verbose=verbose))
        return self._on_event

    def target(self) -> Target:
        """Resolve the command's target once; raise the errors of `resolve_target`."""
        from eosctl.deadline import Event
        from eosctl.machine.files import NamedFiles
        from eosctl.profiles import resolve_target

        if self._target is None:
            self._target = resolve_target(self.flags, self.environ, files=NamedFiles())
            for warning in self._target.warnings:
                self.messages()(Event(warning, warning=True))
            for note in self._target.notes if self.verbosity else ():
                self.messages()(Event(note))
        return self._target

    def profile_target(self, name: str) -> Target:
        """Return the target of one profile alone; raise the errors of `resolve_target`."""
        from eosctl.machine.files import NamedFiles
        from eosctl.profiles import profile_target

        return profile_target(name, self.flags, self.environ, files=NamedFiles())

    def config_file(self) -> ConfigFile:
        """Open the file with profiles as it is; raise InputFileError."""
        from eosctl.machine.files import NamedFiles
        from eosctl.profiles.sources import Sources, open_config

        return open_config(Sources(self.flags, self.environ, NamedFiles()))

    @contextmanager
    def edited_config_file(self) -> Iterator[ConfigFile]:
        """Open the file with profiles for a change, locked for others; raise InputFileError and RefusedError."""
        from eosctl.deadline import Clock
        from eosctl.machine.files import NamedFiles
        from eosctl.profiles.sources import Sources, edited_config

        with edited_config(Sources(self.flags, self.environ, NamedFiles()), self._clock or Clock()) as file:
            yield file

    def shown_target(self, profile: str | None) -> Target:
        """Resolve a target to look at, without fetching secrets; raise the errors of `resolve_target`."""
        from eosctl.machine.files import NamedFiles
        from eosctl.profiles import resolve_target

        flags = {**self.flags, **({"profile": profile} if profile else {})}
        return resolve_target(flags, self.environ, files=NamedFiles(), fetch_secrets=False)

    def audit_log(self) -> AuditLog:
        """Return the log of writes: the file of --audit-log, environment or profile, else in the state directory.

        Writes that are under way are noted beside the log that was named: it may be the one place that is writable.
        """
        from eosctl.deadline import Clock
        from eosctl.state.audit import AuditLog
        from eosctl.state.audit_file import log_path

        named = (self._target or self.shown_target(None)).audit_log
        clock, state_dir = self._clock or Clock(), self.state_dir()
        path = log_path(named, state_dir)
        if named:
            return AuditLog(path, path.with_name(f"{path.name}.writes"), clock)
        return AuditLog(path, state_dir / "writes", clock, state_dir)

    def stopwatch(self) -> Stopwatch:
        """Return the clock of every deadline of this invocation; it is stopped during questions."""
        from eosctl.deadline import Clock, Stopwatch

        if self._stopwatch is None:
            self._stopwatch = Stopwatch(self._clock or Clock())
        return self._stopwatch

    def app(self, target: Target | None = None) -> App:
        """Make the App of this invocation, for its own target or another one; raise as `resolve_target`."""
        from eosctl.app import App
        from eosctl.connect.session import ConnectSession
        from eosctl.deadline import Deadline
        from eosctl.kafka.session import KafkaSession

        self._kafka = self._kafka or KafkaSession()
        self._rest = self._rest or ConnectSession()
        clock = self.stopwatch().clock
        return App(
            target=self.target() if target is None else target,
            deadline=Deadline.after(float(self.flags.get("timeout", DEFAULT_TIMEOUT_S)), clock),
            state_dir=self.state_dir(),
            clock=clock,
            on_event=self.messages(),
            target_of=self.profile_target,
            kafka=self._kafka,
            rest=self._rest,
            **self._doors,
        )


def _print_line(row: Any) -> None:
    sys.stdout.write(f"{printable(row.line())}\n")
    sys.stdout.flush()


def _print_nothing(_row: object) -> None:
    """Ignore the row, which waits for the report."""


def read_file(path: str | Path) -> bytes:
    """Read the bytes of a file named by the user; raise InputFileError."""
    from eosctl.machine.files import NamedFiles

    return NamedFiles().read(path)


def read_text_file(path: str | Path) -> str:
    """Read the text of a file named by the user (ISO-8859-1 if it is not UTF-8); raise InputFileError."""
    data = read_file(path)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("iso-8859-1")


def asked_output(argv: Sequence[str], environ: Mapping[str, str]) -> str:
    """Return the format that `argv` or $EOSCTL_OUTPUT asks for, for errors that come before parsing."""
    asked = environ.get("EOSCTL_OUTPUT", "")
    for word, following in zip_longest(argv, argv[1:], fillvalue=""):
        if word.startswith("--output="):
            asked = word.partition("=")[2]
        elif word == "--output":
            asked = following
        elif found := re.fullmatch(r"-[vyh]*o(.*)", word):  # also behind flags without a value: -vojson
            asked = found[1] or following
    return asked if asked in OUTPUTS else "text"
