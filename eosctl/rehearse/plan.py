"""rehearse: plans what to start, and the order of the faults; starts nothing.

The source of a rehearsal without a config is a growing file of numbered lines, which a connector reads.
"""

from __future__ import annotations

import json
import random
import secrets
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from eosctl.audit.scope import AuditRequest, copies_topics
from eosctl.audit.value_checks import wanted_fields
from eosctl.core.configs.records import pruned_class
from eosctl.core.versions import kafka_version
from eosctl.core.workers.modes import Mode
from eosctl.errors import UsageError
from eosctl.foreign import shell_words
from eosctl.observation.gather import SUPPORT_PROPERTY
from eosctl.rehearse.faults import ALL_FAULTS
from eosctl.rehearse.faults.connectors import Upgrade
from eosctl.rehearse.faults.fault import Fault, Setup, SlowNetwork
from eosctl.rehearse.rules import (
    FitConnector,
    FitWorker,
    GivenConnector,
    fit_connector,
    has_single_replicas,
    requires_exactly_once,
)
from eosctl.sandbox.settings import DEFAULT_VERSION, read_lock

CONNECTOR = "lines"
CLASS = "org.apache.kafka.connect.file.FileStreamSourceConnector"
TOPIC = "rehearsed-lines"
FIELD = "n"
_TICK_S = 0.1
_MOST_LINES = 20


class GrowingFile:
    """A file that gets some lines ten times a second, from `start` to `stop`: `{"n": 0}`, `{"n": 1}` and so on."""

    def __init__(self, path: Path, *, seed: int) -> None:
        self.path, self._chosen = path, random.Random(seed)  # noqa: S311 - no secret
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._grow, daemon=True)
        self.lines = 0

    def start(self) -> None:
        """Make the file and begin to write."""
        self.path.touch()
        self._thread.start()

    def stop(self) -> None:
        """Stop writing."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _grow(self) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            while not self._ended.wait(_TICK_S):
                count = self._chosen.randint(1, _MOST_LINES)
                numbers = range(self.lines, self.lines + count)
                file.writelines(json.dumps({FIELD: number}) + "\n" for number in numbers)
                file.flush()
                self.lines += count


def built_in_config(path: Path) -> dict[str, str]:
    """Return the config of the connector that reads the file; its transactions are long, so that faults hit them."""
    text = "org.apache.kafka.connect.storage.StringConverter"
    return {
        "connector.class": CLASS,
        "tasks.max": "1",
        "file": str(path),
        "topic": TOPIC,
        "transaction.boundary": "interval",
        "transaction.boundary.interval.ms": "500",
        "key.converter": text,
        "value.converter": text,
    }


TRANSACTIONS, DUPLICATES, LOSS = "transactions", "duplicates", "loss"
_LONGEST_PAUSE_S = 3.0


class RehearsalRequest(Struct, frozen=True):
    """The request. `connector` None is the built-in source; `faults` empty are all; `minutes` None: each once.

    `words` are the options that repeat it, but for the seed; `plugin_path` are folders or jars.
    """

    seed: int
    connector: GivenConnector | None = None
    worker: FitWorker = field(default_factory=FitWorker)
    plugin_path: str | None = None
    start_mode: Mode = Mode.DISABLED
    faults: tuple[str, ...] = ()
    minutes: int | None = None
    unique: str | None = None
    sequence: str | None = None
    version: str | None = None
    brokers: int = 1
    workers: int = 2
    keep: bool = False
    strict: bool = False
    words: tuple[str, ...] = ()


class PlannedRound(Struct, frozen=True):
    """A fault of a round: its kind, the pause before it, and the seed of its random choices."""

    kind: type[Fault]
    pause_s: float
    seed: str


class RehearsalPlan(Struct, frozen=True):
    """`connector` None is the built-in source, whose file is made in the sandbox; `left_out` says why, by fault."""

    request: RehearsalRequest
    version: str
    sandbox: str
    connector: FitConnector | None
    kinds: tuple[type[Fault], ...]
    left_out: dict[str, str]

    @property
    def connector_name(self) -> str:
        """The name of the connector."""
        return self.connector.name if self.connector else CONNECTOR

    @property
    def unique(self) -> str | None:
        """The field that no two records share."""
        return self.request.unique or (None if self.connector else FIELD)

    @property
    def sequence(self) -> str | None:
        """The field that counts."""
        return self.request.sequence or (None if self.connector else FIELD)

    @property
    def has_fields(self) -> bool:
        """True if a field distinguishes records."""
        return bool(self.unique or self.sequence)

    def not_judged(self, *, left_mode: bool = False) -> tuple[str, ...]:
        """Return what no audit of this rehearsal can see; with `left_mode`, while workers were not enabled.

        Records that MirrorMaker copied in transactions are compared with the source topics.
        """
        is_compared = self.connector is not None and copies_topics(self.connector.config) and not left_mode
        judged = {
            DUPLICATES: self.has_fields or is_compared,
            LOSS: bool(self.sequence) or is_compared,
        }
        return tuple(what for what, is_judged in judged.items() if not is_judged)

    @property
    def upgrades(self) -> bool:
        """True if it begins with an upgrade."""
        return self.request.start_mode is not Mode.ENABLED

    def has_slow_network(self) -> bool:
        """Decide whether forwarders must stand between workers and brokers."""
        return SlowNetwork in self.kinds

    def rounds(self) -> Iterator[list[PlannedRound]]:
        """Yield rounds without end; the order of each follows from the seed and its number."""
        number = 0
        while True:
            yield order(self.kinds, seed=self.request.seed, number=number)
            number += 1

    def first(self) -> list[tuple[str, str]]:
        """Return (fault, description) of the first round, the upgrade before it."""
        upgrade = [(Upgrade.name, Upgrade.what)] if self.upgrades else []
        return upgrade + [(each.kind.name, each.kind.what) for each in next(self.rounds())]

    def repeat(self) -> str:
        """Return the command that repeats the rehearsal."""
        return shell_words("eosctl", "rehearse", *self.request.words, "--seed", str(self.request.seed))


def plan_rehearsal(request: RehearsalRequest) -> RehearsalPlan:
    """Plan the rehearsal; raise UsageError for an unknown version or fault, RefusedError as `fit_connector`."""
    version = request.version or DEFAULT_VERSION
    read_lock(version)
    number = kafka_version(version) or (0, 0)
    given = request.connector
    fit = fit_connector(given, brokers=request.brokers, kafka_version=number) if given else None
    if fit is not None and request.start_mode is not Mode.ENABLED and requires_exactly_once(fit.config):
        fit = replace(fit, changed=(*fit.changed, f"{SUPPORT_PROPERTY}: left out until the workers are enabled"))
    tasks = given.config.get("tasks.max", "1") if given else "1"
    setup = Setup(
        request.brokers, request.workers, number,
        knows_tasks=tasks.strip().isdecimal(),
        has_one_task=fit is None or pruned_class(fit.config) == pruned_class({"connector.class": CLASS}),
        single_replicas=fit is not None and has_single_replicas(fit.config),
    )  # fmt: skip
    kinds, left_out = choose_faults(request.faults, setup)
    plan = RehearsalPlan(request, version, f"rehearse-{secrets.token_hex(4)}", fit, kinds, left_out)
    asked = AuditRequest(plan.connector_name, unique=plan.unique, sequence=plan.sequence)
    wanted_fields(asked, fit.config if fit else {})
    return plan


def choose_faults(names: Sequence[str], setup: Setup) -> tuple[tuple[type[Fault], ...], dict[str, str]]:
    """Return the named kinds of faults, or all, and why some of them are left out; raise UsageError."""
    known = {kind.name: kind for kind in ALL_FAULTS}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UsageError(f"there is no fault {unknown[0]}", hint=f"There are {', '.join(known)}.")
    wanted = [known[name] for name in dict.fromkeys(names)] or list(known.values())
    left_out = {kind.name: why for kind in wanted if (why := kind.why_not(setup))}
    kinds = tuple(kind for kind in wanted if kind.name not in left_out)
    if not kinds:
        told = "; ".join(f"{name} {why}" for name, why in left_out.items())
        raise UsageError(f"no fault is left: {told}")
    return kinds, left_out


def order(kinds: Sequence[type[Fault]], *, seed: int, number: int) -> list[PlannedRound]:
    """Order the faults of one round: the same for the same kinds, seed and number, however they were named."""
    chosen = random.Random(f"{seed}:{number}")  # noqa: S311 - no secret
    ordered = sorted(kinds, key=lambda kind: kind.name)
    chosen.shuffle(ordered)
    return [
        PlannedRound(kind, round(chosen.uniform(1.0, _LONGEST_PAUSE_S), 2), f"{seed}:{number}:{kind.name}")
        for kind in ordered
    ]
