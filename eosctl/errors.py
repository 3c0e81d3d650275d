"""Every way eosctl can fail: a stable code, an exit code and a hint each.

The library raises these; only the command layer turns them into text and an exit status. Nothing here knows click.
"""

from __future__ import annotations

from enum import IntEnum, unique
from typing import ClassVar

from eosctl.codes import Code, error


@unique
class ExitCode(IntEnum):
    """The exit codes of the process; scripts rely on these numbers."""

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

    code: ClassVar[Code] = error(
        "failed", "It failed for a reason that has no code of its own.", "Read the message; -vv adds a traceback."
    )
    exit_code: ClassVar[ExitCode] = ExitCode.FAILED

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class NotFoundError(EosctlError):
    """A group, topic, connector or transactional id that was named does not exist."""

    code = error(
        "not_found",
        "A group, topic, connector, id or file entry that was named does not exist.",
        "Names are case-sensitive; the `list` commands show what there is.",
    )


class UnsupportedError(EosctlError):
    """The broker, the worker or this machine can't do what was asked; the message names the version that could."""

    code = error(
        "unsupported", "The broker, the worker or this machine can't do it; the message names the version that can."
    )


class NoTransactionsError(UnsupportedError):
    """The broker offers no transactions at all: no other way to ask for one, and no other client, helps."""


class NoLoginError(EosctlError):
    """No Kafka client of this machine knows the SASL mechanism: nothing at all can be asked, whatever a broker can."""

    code = error(
        "no_login",
        "No Kafka client of this machine knows the SASL mechanism, so that nothing can be asked.",
        "Use a mechanism that it knows, or a confluent-kafka that was built with it.",
    )


class ProtocolError(EosctlError):
    """Bytes that do not follow the Kafka protocol, or a response that does not answer its request."""

    code = error(
        "protocol_error",
        "Bytes that do not follow the Kafka protocol.",
        "Check that -b leads to a Kafka broker, and to its right listener (TLS or not).",
    )


class BrokerError(EosctlError):
    """A broker answered with an error that has no better class here; the message names the Kafka error."""

    code = error("broker_error", "A broker answered with an error; the message has Kafka's name for it.")


class ConnectError(EosctlError):
    """A Connect worker answered with an error that has no better class here."""

    code = error("connect_error", "A Connect worker answered with an error.", "Look at the worker's log.")


class AlreadyExistsError(ConnectError):
    """A connector that was to be created exists already."""

    code = error(
        "already_exists",
        "A connector that was to be created exists already.",
        "`eosctl connectors apply` changes a connector that is there.",
    )


class UsageError(EosctlError):
    """The arguments contradict each other or miss something."""

    code = error("usage", "The arguments contradict each other, or one is missing.", "See --help of the command.")
    exit_code = ExitCode.USAGE


class InputFileError(EosctlError):
    """A file that was named is missing, unreadable or malformed; the message names file and line."""

    code = error(
        "input_file",
        "A file that was named is missing, unreadable or malformed.",
        "Check the path, its rights, and the line that the message names.",
    )
    exit_code = ExitCode.USAGE


class UnreachableError(EosctlError):
    """A broker or a worker could not be reached."""

    code = error(
        "unreachable",
        "A broker or a worker could not be reached.",
        "Check the address, the network, and TLS settings; see `eosctl workers list`.",
    )
    exit_code = ExitCode.UNREACHABLE


class DeadlineError(EosctlError):
    """The overall deadline (`--timeout`) was reached."""

    code = error(
        "timed_out",
        "The overall deadline was reached.",
        "Give more time with --timeout, or find out who does not answer.",
    )
    exit_code = ExitCode.UNREACHABLE


class UnauthorizedError(EosctlError):
    """Authentication failed, or an ACL is missing; the hint names the ACL."""

    code = error(
        "not_authorized",
        "Authentication failed, or an ACL is missing.",
        "The hint has the kafka-acls line; `eosctl acls generate` has all of them.",
    )
    exit_code = ExitCode.UNAUTHORIZED


class RefusedError(EosctlError):
    """A safety check said no; nothing was written."""

    code = error(
        "refused", "A safety check said no; nothing was written.", "The message says which, the hint how to satisfy it."
    )
    exit_code = ExitCode.REFUSED


class StalePlanError(RefusedError):
    """The state from which the plan was made has changed since; nothing was written."""

    code = error(
        "stale_plan",
        "What the plan was made from has changed since; nothing was written.",
        "Run the command again: it plans anew.",
    )


class UnconfirmedError(RefusedError):
    """The question was answered with no, or could not be asked because there is no terminal."""

    code = error(
        "unconfirmed",
        "Not agreed to, or not known to have happened: the question was not answered with yes, or a write's "
        "answer was lost.",
        "Look at the plan with --dry-run, apply it with --yes; after a lost answer read again.",
    )


class InterruptedByUserError(EosctlError):
    """Ctrl-C or SIGTERM; the rows, or the message, say what was done before."""

    code = error(
        "interrupted",
        "Ctrl-C or SIGTERM; the rows, or the message, say what was done before.",
        "Run the same command again: it goes on, or plans anew.",
    )
    exit_code = ExitCode.INTERRUPTED
