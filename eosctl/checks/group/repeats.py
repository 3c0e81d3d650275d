"""Repeated events: tasks that fail after each restart, configs that are written without an end.

Nothing is remembered from one look to the next: the status topic and the config topic have every record of the last
minutes, as compaction leaves the active segment alone. Reads only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct

from eosctl.app import App
from eosctl.checks import codes
from eosctl.checks.statuses import StatusLog
from eosctl.connectors.failures import FAILED, known_failure, remedy, what_it_died_of
from eosctl.core.configs.records import RecordKind
from eosctl.core.findings import ERROR, INFO, WARNING, Finding
from eosctl.core.ids import TransactionalId, connector_path, task_transactional_id
from eosctl.errors import EosctlError, InterruptedByUserError
from eosctl.failures import codes as failure_codes
from eosctl.foreign import arguments, shell_word
from eosctl.group.observation.rules import Observation
from eosctl.group.protocol import CONNECTOR_ITSELF
from eosctl.group.topics.statuses import WrittenStatus
from eosctl.observation.connectors.folds import under_cause
from eosctl.txn.log import count_initialisations

WINDOW_MS = 600_000
LEAST_FAILURES, LEAST_CONFIGS, LEAST_STRANGERS = 3, 10, 2
"""So many within the window no rolling restart, scaling or change of a config makes."""
_CALM_MS = 60_000
_FENCED = frozenset({failure_codes.TASK_FENCED, failure_codes.TASK_FENCED_OR_EXPIRED})


class FailingPart(Struct, frozen=True):
    """A connector or task that failed repeatedly: the times, the cause of each, and how often it began to run.

    `goes_on` is false where it has run for longer than it did before.
    """

    connector: str
    task: int
    failed_ms: tuple[int, ...]
    traces: tuple[str, ...]
    starts: int
    goes_on: bool

    @property
    def subject(self) -> str:
        """Return what findings call it."""
        return self.connector if self.task == CONNECTOR_ITSELF else f"{self.connector}/{self.task}"

    @property
    def is_fenced(self) -> bool:
        """Check whether each of its failures is one that another producer under its transactional id causes."""
        known = [known_failure(trace) for trace in self.traces]
        return all(each is not None and each.failure.code in _FENCED for each in known)

    def transactional_id(self, group_id: str) -> TransactionalId:
        """Return the id of the task."""
        return task_transactional_id(group_id, self.connector, self.task)


class IdUse(Struct, frozen=True):
    """The number of times each id was initialised in the window; `unread` is the reason where that is unknown."""

    initialised: Mapping[TransactionalId, int]
    unread: str = ""


def find_repeats(app: App, observation: Observation, log: StatusLog) -> list[Finding]:
    """Return findings about repeated events, or that the status topic does not show them.

    The coordinators' log is read only for a task that fails repeatedly because of another producer.
    """
    now_ms = app.clock.now_ms()
    parts = failing_parts(log, now_ms)
    here = [each for each in parts if each.is_fenced and each.connector not in observation.own_clusters]
    fenced = [each.transactional_id(observation.group_id or "") for each in here]
    unread = [_statuses_unread(log)] if log.unread and log.is_there and observation.connectors else []
    return [*unread, *repeat_findings(observation, parts, _uses_of(app, fenced, now_ms), now_ms)]


def under_repeats(repeats: Sequence[Finding], failures: Sequence[Finding]) -> list[Finding]:
    """Return all findings, with present failures folded under their repetition."""
    again = {each.subject for each in repeats if each.code == codes.FAILS_AGAIN}
    below = [each for each in failures if each.subject in again and each.evidence.get("state") == FAILED]
    told = [
        under_cause(each, [one for one in below if one.subject == each.subject]) if each.subject in again else each
        for each in repeats
    ]
    return [*told, *(each for each in failures if each not in below)]


def _statuses_unread(log: StatusLog) -> Finding:
    return Finding(
        codes.STATUSES_UNREAD, WARNING, "status topic",
        f"what failed and was restarted lately is not known: {log.unread}", codes.STATUSES_UNREAD.next, certain=False,
    )  # fmt: skip


def _uses_of(app: App, ids: Sequence[TransactionalId], now_ms: int) -> IdUse:
    try:
        return IdUse(count_initialisations(app, ids, since_ms=now_ms - WINDOW_MS) if ids else {})
    except InterruptedByUserError:
        raise
    except EosctlError as exc:
        return IdUse({}, exc.message)


def failing_parts(log: StatusLog, now_ms: int) -> list[FailingPart]:
    """Return the parts that failed, were started and failed LEAST_FAILURES times or more within the window."""
    found = (_failing_part(name, task, told, now_ms) for (name, task), told in sorted(log.history.items()))
    return [each for each in found if each is not None]


def _failing_part(name: str, task: int, statuses: Sequence[WrittenStatus], now_ms: int) -> FailingPart | None:
    recent = [at for at, each in enumerate(statuses) if each.at_ms >= now_ms - WINDOW_MS]
    failed = [
        statuses[at] for at in recent if statuses[at].state == FAILED and (at == 0 or statuses[at - 1].state != FAILED)
    ]
    if len(failed) < LEAST_FAILURES:
        return None
    times = [each.at_ms for each in failed]
    longest_ms = max(later - before for before, later in pairwise(times))
    goes_on = statuses[-1].state == FAILED or now_ms - times[-1] <= max(_CALM_MS, 2 * longest_ms)
    runs = sum(statuses[at].state == "RUNNING" for at in recent)
    starts = max(runs, len(failed)) + 1  # one may have begun before the window
    return FailingPart(name, task, tuple(times), tuple(each.trace for each in failed), starts, goes_on)


def repeat_findings(
    observation: Observation, parts: Iterable[FailingPart], uses: IdUse, now_ms: int
) -> Iterable[Finding]:
    """Yield a finding for each part that fails after each restart, and for each config that is written all the time.

    One that ended a while ago is for information.
    """
    known = {each.name for each in observation.connectors or ()}
    for part in parts:
        if part.connector in known:
            yield _fails_again(part, observation, uses, now_ms)
    for (kind, name), times in sorted(observation.config_records_ms.items()):
        recent = [each for each in times if each >= now_ms - WINDOW_MS]
        if kind is not RecordKind.CONNECTOR or name not in known or len(recent) < LEAST_CONFIGS:
            continue
        longest_ms = max(later - before for before, later in pairwise(recent))
        goes_on = now_ms - recent[-1] <= max(_CALM_MS, 2 * longest_ms)
        yield Finding(
            codes.CONFIG_WRITTEN_AGAIN, WARNING if goes_on else INFO, name,
            f"the config of {name} was written {len(recent):,} times in the last 10 minutes, the last time "
            f"{_ago(recent[-1], now_ms)}: each time its tasks may stop and start",
            f"Find who sends PUT {connector_path(name)}/config (a script, an operator), and have it send a config only "
            "where it differs.",
            {"writes": len(recent), "last_ms": recent[-1]},
        )  # fmt: skip


def _fails_again(part: FailingPart, observation: Observation, uses: IdUse, now_ms: int) -> Finding:
    transactional_id = part.transactional_id(observation.group_id or "")
    strangers = _strangers(part, observation, uses, now_ms)
    times = f"{len(part.failed_ms)} times in the last 10 minutes, the last time {_ago(part.failed_ms[-1], now_ms)}"
    if strangers is not None and strangers >= max(LEAST_STRANGERS, len(part.failed_ms) // 2):
        why = (
            f"another producer took {transactional_id}, which was initialised {strangers:,} times more than the task "
            "was started"
        )
        fix = (
            f"Find who else uses {shell_word(transactional_id)} (`eosctl txn log --all-records "
            f"{arguments(transactional_id)}` shows when), and give it another transactional.id; then "
            f"`eosctl connectors restart --failed {arguments(part.connector)}`."
        )
    else:
        why = f"somebody restarts it, and it fails again: {what_it_died_of(part.traces[-1])}"
        fix = _fix(part)
        if part.is_fenced and strangers is None:
            unread = uses.unread or "it is of another Kafka cluster"
            why += f"; whether another producer takes {transactional_id} is not known: {unread}"
    return Finding(
        codes.FAILS_AGAIN, ERROR if part.goes_on else INFO, part.subject,
        f"{part.subject} failed and was restarted {times}: {why}", fix,
        {
            "failures": len(part.failed_ms),
            "last_ms": part.failed_ms[-1],
            "transactional_id": transactional_id if part.is_fenced else None,
            "other_initialisations": strangers,
        },
    )  # fmt: skip


def _strangers(part: FailingPart, observation: Observation, uses: IdUse, now_ms: int) -> int | None:
    """Return how often its id was initialised by other than Connect: neither a start of the task nor a fencing round.

    None where that was not looked at, or could not be.
    """
    initialised = uses.initialised.get(part.transactional_id(observation.group_id or ""))
    if initialised is None:
        return None
    rounds = observation.config_records_ms.get((RecordKind.TASK_COUNT, part.connector), ())
    return max(0, initialised - part.starts - sum(each >= now_ms - WINDOW_MS for each in rounds))


def _fix(part: FailingPart) -> str:
    known = known_failure(part.traces[-1])
    shown = f"`eosctl connectors trace -o json {arguments(part.connector)}` has the whole trace."
    mend = shown if known is None else remedy(known).replace("{c}", shell_word(part.connector))
    return f"Mend its cause first, a restart does not: {mend.replace('{name}', arguments(part.connector))}"


def _ago(at_ms: int, now_ms: int) -> str:
    return f"{max(0, now_ms - at_ms) // 1000:,} s ago"
