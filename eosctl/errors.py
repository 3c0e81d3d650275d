"""Every way eosctl can fail: a stable code, an exit code and a hint each.

The library raises these; only the command layer turns them into text and an exit status. Nothing here knows click.
"""

from __future__ import annotations

from enum import IntEnum, unique
from typing import ClassVar


@unique
class ExitCode(IntEnum):
    """What the process exits with; scripts rely on these numbers."""

    OK = 0
    FAILED = 1
    USAGE = 2
    FINDINGS = 3
    UNREACHABLE = 4
    UNAUTHORIZED = 5
    REFUSED = 6
    PARTIAL = 7
    INTERRUPTED = 130


class EosctlError(Exception):
    """Base of all errors that a user should read: `message` says what and where, `hint` what to do next."""

    code: ClassVar[str] = "failed"
    exit_code: ClassVar[ExitCode] = ExitCode.FAILED

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class NotFoundError(EosctlError):
    """A group, topic, connector or transactional id that was named does not exist."""

    code = "not_found"


class UnsupportedError(EosctlError):
    """The broker, the worker or this machine can't do what was asked; the message names the version that could."""

    code = "unsupported"


class NoLoginError(EosctlError):
    """No Kafka client of this machine knows the SASL mechanism: nothing at all can be asked, whatever a broker can."""

    code = "no_login"


class ProtocolError(EosctlError):
    """Bytes that do not follow the Kafka protocol, or a response that does not answer its request."""

    code = "protocol_error"


class BrokerError(EosctlError):
    """A broker answered with an error that has no better class here; the message names the Kafka error."""

    code = "broker_error"


class ConnectError(EosctlError):
    """A Connect worker answered with an error that has no better class here."""

    code = "connect_error"


class UsageError(EosctlError):
    """The arguments contradict each other or miss something."""

    code = "usage"
    exit_code = ExitCode.USAGE


class InputFileError(EosctlError):
    """A file that was named is missing, unreadable or malformed; the message names file and line."""

    code = "input_file"
    exit_code = ExitCode.USAGE


class UnreachableError(EosctlError):
    """A broker or a worker could not be reached."""

    code = "unreachable"
    exit_code = ExitCode.UNREACHABLE


class DeadlineError(EosctlError):
    """The overall deadline (`--timeout`) was reached."""

    code = "timed_out"
    exit_code = ExitCode.UNREACHABLE


class UnauthorizedError(EosctlError):
    """Authentication failed, or an ACL is missing; the hint names the ACL."""

    code = "not_authorized"
    exit_code = ExitCode.UNAUTHORIZED


class RefusedError(EosctlError):
    """A safety check said no; nothing was written."""

    code = "refused"
    exit_code = ExitCode.REFUSED


class StalePlanError(RefusedError):
    """What the plan was made from has changed since; nothing was written."""

    code = "stale_plan"


class UnconfirmedError(RefusedError):
    """The question was answered with no, or could not be asked because there is no terminal."""

    code = "unconfirmed"


class InterruptedByUserError(EosctlError):
    """Ctrl-C or SIGTERM; the message says what was done before."""

    code = "interrupted"
    exit_code = ExitCode.INTERRUPTED
