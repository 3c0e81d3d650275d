"""Every code and word that can be explained, collected from the modules that declare them.

The list of modules is written out; a test holds it complete.

Exit codes, and the words of the field that help and messages use.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import ModuleType

from eosctl import errors
from eosctl.acls import codes as acls
from eosctl.audit import codes as audit
from eosctl.checks import codes as checks
from eosctl.codes import Code
from eosctl.collect import codes as collect
from eosctl.connectors import codes as connectors
from eosctl.core import open_transactions
from eosctl.core.configs import fold
from eosctl.core.offsets import codes as offsets_topics
from eosctl.core.workers import codes as metrics
from eosctl.create import codes as create
from eosctl.failures import codes as failures
from eosctl.fence import codes as fence
from eosctl.group import codes as group
from eosctl.migrate import codes as migrate
from eosctl.move import codes as move
from eosctl.observation.connectors import codes as connector_configs
from eosctl.offsets import codes as offsets
from eosctl.plugins import codes as plugins
from eosctl.profiles import codes as profiles
from eosctl.rehearse import codes as rehearse
from eosctl.rescue import codes as rescue
from eosctl.state import codes as state
from eosctl.task_counts import codes as task_counts
from eosctl.txn import codes as txn
from eosctl.upgrade import codes as upgrade


def _exit_code(number: str, meaning: str, next_step: str = "") -> Code:
    """Make the entry of an exit code."""
    return Code(number, "exit code", meaning, next_step)


def _word(name: str, meaning: str, next_step: str = "") -> Code:
    """Make the entry of a word of the field."""
    return Code(name, "word", meaning, next_step)


EXIT_CODES = (
    _exit_code("0", "Done, or nothing to do."),
    _exit_code("1", "Failed; or a named group, topic, connector or id does not exist."),
    _exit_code("2", "Usage; or an input file is missing or unreadable."),
    _exit_code("3", "The check ran and the answer is no: findings, differences."),
    _exit_code("4", "Unreachable, or timed out."),
    _exit_code("5", "Not authorized."),
    _exit_code("6", "Refused by a safety check, or no --yes: nothing was written."),
    _exit_code(
        "7",
        "Partial: some items failed, and the report says which.",
        "Read errors and rows; run the same command again.",
    ),
    _exit_code("130", "Interrupted."),
)

WORDS = (
    _word(
        "exactly-once",
        "A source task writes its records and its source offsets in one transaction, so that readers of "
        "committed records see both or neither (KIP-618).",
        "`eosctl upgrade plan --to enabled`.",
    ),
    _word(
        "zombie",
        "A task that was replaced and still runs somewhere, and may still write.",
        "`eosctl fence --connector NAME`.",
    ),
    _word(
        "fencing",
        "Raising the producer epoch of a transactional id at its coordinator: the open transaction is aborted, "
        "and older producers of that id can no longer write or commit.",
        "`eosctl fence`.",
    ),
    _word(
        "epoch",
        "The number that a transactional id's producer id carries; a producer with an older one is refused "
        "(ProducerFencedException, InvalidProducerEpochException).",
        "`eosctl txn describe ID`.",
    ),
    _word(
        "transactional id",
        "The name under which a producer's transactions go on after a restart. Connect's: GROUP-CONNECTOR-TASK "
        "for tasks, connect-cluster-GROUP for the leader.",
        "`eosctl txn list`.",
    ),
    _word(
        "task-count record",
        "A record of the config topic (tasks-fencing-CONNECTOR) that says how many ids the leader fences before "
        "the tasks of a new generation start.",
        "`eosctl task-counts list`.",
    ),
    _word(
        "deployed field",
        "What a chart, Git or a manifest says of a workload, the mode of its workers for one: the next deploy brings "
        "it back, whatever was changed in the cluster, and with it disabled workers beside enabled ones.",
        "`eosctl upgrade apply --driver kubernetes` names it; --print-patch, --no-write.",
    ),
    _word(
        "LSO",
        "Last stable offset: where readers of committed records stop, the beginning of the oldest open transaction.",
        "`eosctl txn hanging`.",
    ),
    _word(
        "hanging transaction",
        "Open on a partition and forgotten by its coordinator: nothing ends it by itself (KIP-664).",
        "`eosctl txn complete --as-decided` if it was committed, else `eosctl txn abort`.",
    ),
    _word(
        "global",
        "The store of source offsets that all connectors of a group share: the worker's offset.storage.topic.",
        "`eosctl offsets list`.",
    ),
    _word(
        "dedicated",
        "A connector's own store of source offsets: its offsets.storage.topic. KIP-618 promises the global one "
        "as fallback; no Kafka so far has it.",
        "`eosctl offsets diff`, then `eosctl offsets merge` or `switch`.",
    ),
    _word(
        "two-step upgrade",
        "All workers go to preparing before any goes to enabled: a disabled worker beside an enabled one writes "
        "without transactions, and can't be fenced.",
        "`eosctl upgrade plan --to enabled`.",
    ),
    _word(
        "preparing",
        "A worker's mode between disabled and enabled: its leader writes to the config topic with transactions, "
        "its tasks do not.",
    ),
    _word("tombstone", "A record with a null value: it deletes its key. Connect reads a deleted offset as no offset."),
    _word(
        "effective offset",
        "What a task is given at its start; eosctl shows what KIP-618 documents beside what Kafka does (runtime).",
        "`eosctl offsets list`.",
    ),
    _word(
        "token_command",
        "`sasl.oauthbearer.token_command` of a --command-config file, or of `client` in a profile: a command that "
        "prints a bearer token for OAUTHBEARER, and nothing else. It is run again before that token ends: before "
        "the `exp` of a JWT, else within five minutes. Nobody else may be able to write to the file that names it.",
        "For AWS_MSK_IAM: `security.protocol=SASL_SSL`, `sasl.mechanism=OAUTHBEARER`, and "
        "`sasl.oauthbearer.token_command=python3 -c 'from aws_msk_iam_sasl_signer import MSKAuthTokenProvider as p; "
        'print(p.generate_auth_token("eu-west-1")[0])\'`.',
    ),
)


MODULES = (
    *(errors, open_transactions, fold, offsets_topics, metrics, collect),
    *(state, failures, group, connectors, create, txn, acls, fence),
    *(offsets, task_counts, migrate, move, plugins),
    *(profiles, rescue, connector_configs, upgrade, checks, audit, rehearse),
)
"""The modules that declare codes."""
KINDS = ("error", "warning", "finding", "gate", "exit code", "word")
"""Types of entries, as docs/codes.md has them."""
_IN_THEIR_OWN_ORDER = ("gate", "exit code", "word")


def known_entries() -> list[Code]:
    """Return everything that can be explained, by type; codes by name, gates in the order of their repair."""
    declared = {each: each for module in MODULES for each in _codes_of(module)}
    entries = (*declared, *EXIT_CODES, *WORDS)
    return [entry for kind in KINDS for entry in _in_order(kind, entries)]


def finding_codes() -> Sequence[str]:
    """Return the codes that a finding can have: also failed gates, warnings and errors."""
    return [entry for entry in known_entries() if entry.kind in ("finding", "gate", "warning", "error")]


def _codes_of(module: ModuleType) -> Iterable[Code]:
    """Yield the codes that a module declares, and those of its errors."""
    for value in vars(module).values():
        if isinstance(value, Code):
            yield value
        elif isinstance(value, type) and issubclass(value, errors.EosctlError):
            yield value.code


def _in_order(kind: str, entries: Iterable[Code]) -> list[Code]:
    found = [entry for entry in entries if entry.kind == kind]
    return found if kind in _IN_THEIR_OWN_ORDER else sorted(found)
