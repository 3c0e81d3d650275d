"""The audit log: one JSON line for every write that was begun, with its outcome; `eosctl history` reads it.

A write that a safety check refused has a line, too. A line is appended when its write is over. Until then the entry is
in a file of its own under the state directory, locked by the writing process: if the lock is free and the file still
exists, that process was killed, and the next eosctl adds the line with outcome `killed`. No secret may reach an entry.

An entry has the names that its write affects: connectors, transactional ids, topics, workers, principals.
"""

from __future__ import annotations

import fcntl
import getpass
import hashlib
import json
import os
import platform
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from msgspec import Struct
from msgspec.json import Encoder
from msgspec.structs import replace

from eosctl.core.clients.logins import HIDDEN, without_logins
from eosctl.core.offsets.names import DEDICATED, GLOBAL
from eosctl.core.wording import rfc3339
from eosctl.deadline import Clock
from eosctl.errors import EosctlError, ExitCode, RefusedError, StalePlanError
from eosctl.machine.files import NotOursError, open_own, own_folder, sync_directory
from eosctl.report import Json, Problem, Report, plain
from eosctl.state.audit_file import append_entry, appending, entry_in, lock_now, read_entries, write_all
from eosctl.target import Target

KINDS = ("connectors", "transactional_ids", "topics", "workers", "principals")
_MOST = 1000
"""The largest number of names per kind; `left_out` counts the others, as a bulk write affects very many ids."""
_UNTOUCHED = {"keep", "kept", "conflict", "skipped_unknown", "done_before", "not_reached"}
# member of a row -> its kind
_OF_ROWS = {
    "connector": "connectors",
    "transactional_id": "transactional_ids",
    "topic": "topics",
    "worker": "workers",
    "principal": "principals",
}
_OF_DATA = {"connector": "connectors", "connectors": "connectors", "from": "topics", "to": "topics"}
_OF_ARGUMENTS = {
    "connector": "connectors",
    "connectors": "connectors",
    "transactional_ids": "transactional_ids",
    "topic": "topics",
    "topics": "topics",
}


class AffectedNames:
    """The affected names of a plan or a result, by kind; its rows are added one by one."""

    def __init__(self, report: Report, arguments: Mapping[str, object]) -> None:
        self._found: dict[str, set[str]] = {kind: set() for kind in KINDS}
        self._add_members(_OF_ARGUMENTS, arguments)
        data = plain(report.data)
        self._add_members(_OF_DATA, data)
        fence = data.get("fence")
        for row in fence["rows"] if isinstance(fence, Mapping) else ():
            self.add(row)
        for kind, names in (report.touches or {}).items():
            self._found[kind].update(names)

    def add(self, row: Mapping[str, Any]) -> None:
        """Add the names of a row; there may be millions, so this is only a lookup per member."""
        if row.get("action") in _UNTOUCHED or row.get("outcome") in _UNTOUCHED:
            return
        found = self._found
        for member, kind in _OF_ROWS.items():
            if name := row.get(member):
                found[kind].add(str(name))
        if target := row.get("target"):
            found["topics"].add(str(target["topic"]))
        if (owner := row.get("owner")) and owner["connector"]:
            found["connectors"].add(owner["connector"])

    def names(self) -> dict[str, Json]:
        """Return the names by kind, sorted, without empty kinds."""
        self._found["topics"] -= {GLOBAL, DEDICATED}
        affected: dict[str, Json] = {kind: sorted(names)[:_MOST] for kind, names in self._found.items() if names}
        left_out = sum(max(0, len(names) - _MOST) for names in self._found.values())
        return affected | ({"left_out": left_out} if left_out else {})

    def _add_members(self, kinds: Mapping[str, str], members: Mapping[str, object]) -> None:
        for member, kind in kinds.items():
            value = members.get(member)
            names = value if isinstance(value, list | tuple) else [value]
            self._found[kind].update(name for name in names if isinstance(name, str))


def affected_names(entry: Mapping[str, object]) -> Mapping[str, Any]:
    """Return the names of an entry of the audit log; of an older eosctl's, as far as its arguments show them."""
    recorded = entry.get("touched")
    if isinstance(recorded, Mapping):
        others = {name: each for name, each in recorded.items() if name not in KINDS}
        named = {kind: recorded[kind] for kind in KINDS if isinstance(recorded.get(kind), list)}
        return {kind: [str(name) for name in names] for kind, names in named.items()} | others
    arguments = entry.get("arguments")
    return AffectedNames(Report("entry"), arguments if isinstance(arguments, Mapping) else {}).names()


KILLED, INTERRUPTED, REFUSED = "killed", "interrupted", "refused"
_Entry = dict[str, Json]


class AuditedCommand(Struct, frozen=True):
    """The command to be recorded: its words, its arguments, and those of them that waive a check."""

    command: str
    arguments: Mapping[str, object]
    overrides: Collection[str]
    target: Target
    sudo_user: str | None = None

    def members(self, plan: Report, rows: _Rows) -> dict[str, Json]:
        """Return the entry's members for command and target; the ids of cluster and group are those that were found."""
        client, arguments = self.target.client, _plain_arguments(self.arguments)
        return {
            "sudo_user": self.sudo_user,
            "command": self.command,
            "arguments": arguments,
            "touched": rows.touched,
            "overrides": {name: arguments[name] for name in sorted(self.overrides)},
            "target": {
                **plan.target,
                "bootstrap_servers": list(client.bootstrap_servers) if client else [],
                "connect_urls": _without_passwords(self.target.connect_urls),
            },
        }


class AuditLog(Struct, frozen=True):
    """The log at `path`, which need not exist yet; `pending` is the directory of writes in progress.

    `state_dir` holds both, unless the user named the log.
    """

    path: Path
    pending: Path
    clock: Clock
    state_dir: Path | None = None

    def require_writable(self) -> None:
        """Create the log if missing; raise RefusedError if a line could not be added."""
        with self._refusing():
            if self.state_dir is not None:
                own_folder(self.state_dir)
            with appending(self.path):
                pass

    def record(self, action: AuditedCommand, plan: Report, apply: Callable[[], Report]) -> Report:
        """Call `apply` and add one line with its outcome, even if it raises; return its report.

        Raises RefusedError before the write if nothing can be recorded, and what `apply` raises. If only the line could
        not be added, the report has a problem and is no success.
        """
        self.require_writable()
        with suppress(OSError):  # an earlier write is no reason to refuse this one
            self.add_killed()
        entry = self._entry(action, plan)
        with self._refusing():
            draft = self._begin(entry)
        try:
            try:
                result = apply()
            except BaseException as exc:
                with suppress(OSError):
                    self._finish(entry | self._failed(exc, plan), draft)
                raise
            try:
                rows = _look_at(result, "after", action)
                done = self._done(result, after_digest=rows.digest)
                touched = rows.touched or entry["touched"]  # what was cut off names its steps alone
                self._finish(entry | done | {"touched": touched}, draft)
            except OSError as exc:
                return _unrecorded(result, self.path, exc)
            return result
        finally:
            os.close(draft.descriptor)

    def add_refused(self, action: AuditedCommand, plan: Report, why: Problem) -> None:
        """Add the line of a write that a safety check refused: nothing was written; raise OSError."""
        self.add_killed()  # it began earlier
        refused = Report(plan.kind, exit_code=ExitCode.REFUSED, problems=[why])
        append_entry(self.path, self._entry(action, plan) | self._done(refused))

    def add_killed(self) -> list[NotOursError]:
        """Add the missing lines of writes whose process was killed, or could not add one.

        Return the files that were left alone, as others could have put them there. Raises OSError.
        """
        others: list[NotOursError] = []
        paths = sorted(self.pending.glob("*.json"))
        try:
            if paths:
                own_folder(self.pending)
        except NotOursError as exc:
            return [exc]
        for path in paths:
            try:
                descriptor = open_own(path)
            except NotOursError as exc:
                others.append(exc)
                continue
            except FileNotFoundError:
                continue  # another eosctl was faster
            with open(descriptor, "rb") as file:
                if not lock_now(file.fileno()) or os.fstat(file.fileno()).st_nlink == 0:
                    continue  # still at work, or another eosctl was faster
                entry = entry_in(file.read())
                entry.pop("log", None)  # older versions named it
                if entry and not any(line["id"] == entry["id"] for line in read_entries(self.path).entries):
                    append_entry(self.path, entry | {"outcome": entry.get("outcome") or KILLED})
                path.unlink(missing_ok=True)
        return others

    def _entry(self, action: AuditedCommand, plan: Report) -> _Entry:
        now_ms = self.clock.now_ms()
        of_plan = Digest([{"kind": plan.kind, "target": plan.target, "data": plain(plan.data)}])
        rows = _look_at(plan, "before", action, whole=of_plan)
        return {
            "id": uuid4().hex,
            "time": rfc3339(now_ms),
            "time_ms": now_ms,
            "ended": None,
            "ended_ms": None,
            "user": _user(),
            "host": platform.node(),
            "pid": os.getpid(),
            **action.members(plan, rows),
            "plan_digest": str(of_plan),
            "before_digest": rows.digest,
            "after_digest": None,
            "outcome": None,
            "exit_code": None,
            "summary": {},
            "backup": None,
            "undo": plan.datum("undo"),  # what a killed write leaves behind may be taken back, too
            "error": None,
        }

    def _done(self, result: Report, *, after_digest: str | None = None) -> _Entry:
        interrupted = result.exit_code == ExitCode.INTERRUPTED
        problem = next((each for each in result.problems if each.severity == "error"), None)
        return self._end() | {
            "after_digest": after_digest,
            "outcome": INTERRUPTED if interrupted else result.status.value,
            "exit_code": int(result.exit_code),
            "summary": plain(result.summary),
            "backup": result.datum("backup"),
            "undo": result.datum("undo"),
            "error": problem and {"code": problem.code, "message": problem.message},
        }

    def _failed(self, exc: BaseException, plan: Report) -> _Entry:
        """Return the outcome of an exception; record only the type of a foreign one, as its text may hold secrets.

        Part of the write may have happened: the plan's undo stays, unless the plan was found stale before.
        """
        if isinstance(exc, EosctlError):
            report = Report("error", exit_code=exc.exit_code, problems=[Problem.of(exc)])
        elif isinstance(exc, KeyboardInterrupt):
            report = Report("error", exit_code=ExitCode.INTERRUPTED)
        else:
            report = Report(
                "error", exit_code=ExitCode.FAILED, problems=[Problem(EosctlError.code, type(exc).__name__)]
            )
        undo = {} if isinstance(exc, StalePlanError) else {"undo": plan.datum("undo")}
        return self._done(report) | undo

    def _end(self) -> _Entry:
        now_ms = self.clock.now_ms()
        return {"ended": rfc3339(now_ms), "ended_ms": now_ms}

    def _begin(self, entry: _Entry) -> _Draft:
        own_folder(self.pending)
        draft = self.pending / f".{entry['id']}"  # until it is locked: nobody may take it for a killed process's
        path = draft.with_name(f"{entry['id']}.json")
        descriptor = open_own(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            _keep(entry, descriptor)
            draft.replace(path)
            sync_directory(self.pending)
        except BaseException:
            os.close(descriptor)
            raise
        return _Draft(path, descriptor)

    def _finish(self, entry: _Entry, draft: _Draft) -> None:
        try:
            append_entry(self.path, entry)
        except OSError:
            _keep(entry, draft.descriptor)
            raise
        draft.path.unlink(missing_ok=True)

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except OSError as exc:
            raise RefusedError(
                f"cannot write the audit log {self.path}: {exc.strerror or exc}; nothing was written",
                hint="Every write is recorded. "
                + getattr(exc, "hint", "Check space and rights, or name another file with --audit-log."),
            ) from exc


class _Draft(Struct, frozen=True):
    """The file of a write in progress, and its lock."""

    path: Path
    descriptor: int


def _keep(entry: _Entry, descriptor: int) -> None:
    os.ftruncate(descriptor, 0)
    os.lseek(descriptor, 0, os.SEEK_SET)
    write_all(descriptor, json.dumps(entry).encode())


class Digest:
    """The `sha256:…` of values as JSON, with sorted keys, one a line."""

    _encode = Encoder(order="sorted", enc_hook=str).encode

    def __init__(self, values: Iterable[Json] = ()) -> None:
        self._sha256, self.is_empty = hashlib.sha256(), True
        for value in values:
            self.add(value)

    def add(self, value: Json) -> None:
        """Add the next value."""
        self.is_empty = False
        try:
            line = self._encode(value)
        except (UnicodeEncodeError, TypeError):  # a name on the command line may be no UTF-8
            line = json.dumps(value, sort_keys=True, default=str).encode()
        self._sha256.update(line + b"\n")

    def __str__(self) -> str:
        return f"sha256:{self._sha256.hexdigest()}"


class _Rows(Struct, frozen=True):
    """The data of a report's rows for an entry: names, and the digest of one member of each; None if none has it."""

    touched: dict[str, Json]
    digest: str | None


def _look_at(report: Report, member: str, action: AuditedCommand, *, whole: Digest | None = None) -> _Rows:
    """Read each row once, also for the digest of the `whole`: there may be 100,000, each made on access."""
    touched, of_member = AffectedNames(report, _plain_arguments(action.arguments)), Digest()
    for row in map(plain, report.rows):
        touched.add(row)
        if whole is not None:
            whole.add(row)
        if member in row:
            of_member.add(row[member])
    is_known = not of_member.is_empty and report.touches is None  # the first rows do not represent the others
    return _Rows(touched.names(), str(of_member) if is_known else None)


def _unrecorded(result: Report, path: Path, exc: OSError) -> Report:
    from eosctl.state import codes  # every write loads this file, and few fail here

    problem = Problem(
        codes.AUDIT_FAILED,
        f"the write was done, and its line could not be added to {path}: {exc.strerror or exc}",
        "The next eosctl adds it, once the file can be written.",
    )
    code = ExitCode.PARTIAL if result.exit_code == ExitCode.OK else result.exit_code
    return replace(result, problems=[*result.problems, problem], exit_code=code)


def _user() -> str:
    """Return the login name, or the number of a user without one."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def _plain_arguments(given: Mapping[str, object]) -> dict[str, Json]:
    """Convert arguments to JSON, without passwords.

    Of settings (`--conf K=V`, `--set K=V`) only values known to be harmless are shown, of commands only the program.
    """
    return {name: _argument(name, value) for name, value in given.items()}


def _argument(option: str, value: object) -> Json:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, list | tuple):
        return [_argument(option, item) for item in value]
    text = str(getattr(value, "name", value))  # an open file says which one it is
    if option.endswith("_command"):
        program, blank, rest = text.strip().partition(" ")
        return without_logins(program) + (f"{blank}{HIDDEN}" if rest else "")
    name, equals, rest = text.partition("=")
    if not equals:
        return without_logins(text)
    from eosctl.core.clients.hidden_secrets import shown_value, sounds_secret

    if option in ("conf", "settings"):
        return f"{name}={shown_value(name, rest)}"
    return f"{name}={HIDDEN}" if sounds_secret(name) else without_logins(text)


def _without_passwords(urls: Collection[str]) -> list[Json]:
    if not urls:
        return []
    from eosctl.core.workers.url import parse_worker_url

    return [parse_worker_url(url).text for url in urls]
