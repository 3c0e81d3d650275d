"""What a plan says of both sides besides the connector itself: plugins, modes, topics, and transactional ids.

What must not be is refused, what may matter is a problem.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from eosctl.connectors.definition import ConnectorDefinition
from eosctl.connectors.topics import find_topics
from eosctl.core.allowances import Waiver
from eosctl.core.configs.records import PROPERTY, names_one_of
from eosctl.core.workers.modes import Mode
from eosctl.create.looks import clashing_ids, find_twins, other_workers, require_plugin
from eosctl.create.place import ConnectorPlacement
from eosctl.errors import EosctlError, InterruptedByUserError, RefusedError
from eosctl.group.modes import probe_mode
from eosctl.move import codes
from eosctl.move.offsets import Arrival
from eosctl.move.sides import Side
from eosctl.offsets.history.config_changes import compare_configs, starts_over
from eosctl.offsets.switch.rights import rights_problems
from eosctl.report import Problem

_PLUGIN_VERSION = "connector.plugin.version"
"""Since Kafka 4.1 (KIP-891): a worker may have several versions of a plugin."""


class MoveFacts(Struct, frozen=True):
    """The plugin's versions, None where a worker lists none; the topics that the connector writes to, as far as known.

    `is_promised`: the workers of both sides are, or may be, enabled, so that the move is to be exactly-once.
    """

    plugin_here: str | None = None
    plugin_there: str | None = None
    topics: tuple[str, ...] = ()
    is_promised: bool = False
    problems: tuple[Problem, ...] = ()


def gather_facts(here: Side, there: Side, config: Mapping[str, str], *, look: bool) -> MoveFacts:
    """Gather what a plan says of both sides; without `look` only what later steps need.

    `config` is the connector's there. Raises RefusedError for a plugin that is not there, and for transactional ids
    that another connector of either group has.
    """
    problems: list[Problem] = []
    modes = {side.where: _mode(side, problems) for side in (here, there)}
    topics, unknown = _topics(here)
    is_promised = Mode.NOT_ENABLED not in modes.values()
    if not look:
        return MoveFacts(topics=topics, is_promised=is_promised)
    problems += _of_modes(modes)
    problems += [] if unknown is None else [unknown]
    versions = [_plugin_version(here, here.require().config), _plugin_version(there, config)]
    require_plugin(there.worker(), ConnectorDefinition(there.connector, config, here.where))
    if versions[0] != versions[1] or versions[1] == "":
        problems.append(_plugin_differs(config, *versions))
    _refuse_shared_ids(here, there)
    problems += _missing_topics(here, there, config, topics)
    return MoveFacts(versions[0] or None, versions[1] or None, topics, is_promised, tuple(problems))


def _mode(side: Side, problems: list[Problem]) -> Mode:
    try:
        mode, reason = probe_mode(side.worker())
    except InterruptedByUserError:
        raise
    except EosctlError as exc:
        mode, reason = Mode.UNKNOWN, exc.message
    if mode is Mode.UNKNOWN:
        message = f"whether the workers of {side.where} are enabled for exactly-once is not known: {reason}"
        problems.append(Problem(codes.MODE_NOT_KNOWN, message, hint=codes.MODE_NOT_KNOWN.next))
    return mode


def _of_modes(modes: Mapping[str, Mode]) -> Iterator[Problem]:
    for where, mode in modes.items():
        if mode is Mode.NOT_ENABLED:
            yield Problem(
                codes.AT_LEAST_ONCE,
                f"the workers of {where} are not enabled for exactly-once: the move is at least once, and is not "
                "audited",
                hint=codes.AT_LEAST_ONCE.next,
            )


def _topics(here: Side) -> tuple[tuple[str, ...], Problem | None]:
    """Return the topics that the connector writes to, without patterns; and a problem if they are not known."""
    if here.now is None:
        return (), None
    found = find_topics(here.pinned(), {here.connector: here.now.config}, shown=here.shown)
    of = found.of[here.connector]
    named = tuple(name for name in dict.fromkeys([*of.written, *of.likely]) if not name.endswith("*"))
    is_unknown = not named or here.connector in found.unreported
    message = found.problems[0].message if found.problems else f"{here.connector} has written to no topic yet"
    return named, Problem(codes.TOPICS_NOT_KNOWN, message, hint=codes.TOPICS_NOT_KNOWN.next) if is_unknown else None


def _plugin_version(side: Side, config: Mapping[str, str]) -> str | None:
    """Return the version of the connector's plugin at the worker, "" where it reports none; None without a plugin."""
    found = [each for each in side.worker().plugins() if names_one_of(config, [str(each.get("class"))])]
    if not found:
        return None
    wanted = config.get(_PLUGIN_VERSION)
    versions = sorted({str(each["version"]) for each in found if each.get("version")})
    return wanted if wanted in versions else ", ".join(versions)


def _plugin_differs(config: Mapping[str, str], here: str | None, there: str | None) -> Problem:
    message = f"{config.get(PROPERTY)} is {here or 'of an unknown version'} here, and {there or 'unknown'} there"
    return Problem(codes.PLUGIN_DIFFERS, message, hint=codes.PLUGIN_DIFFERS.next)


def _refuse_shared_ids(here: Side, there: Side) -> None:
    """Raise RefusedError if another connector of the two groups has an id there that its tasks would have.

    Ids are plain joins with `-`: group `a-b` with connector `c` has those of group `a` with connector `b-c`.
    """
    prefix = f"{there.group_id}-{there.connector}-"
    for side in (there, *([here] if here.cluster_id == there.cluster_id else [])):
        for name in side.shown:
            if name != side.connector and f"{side.group_id}-{name}-" == prefix:
                raise RefusedError(
                    f"the tasks of {there.connector} would have the transactional ids of connector {name} of "
                    f"{side.where} ({prefix}0, ...), and each would fence the other's; nothing was changed",
                    hint="--rename NAME gives it other ids.",
                )


def problems_there(
    place: ConnectorPlacement, arrival: Arrival, before: Mapping[str, str], *, read_again: bool
) -> list[Problem]:
    """Return what may be wrong with the connector on the side that it moves to.

    `before` is its config on the side that it leaves. Raises RefusedError where it would start over, unless it may
    `read_again`, where a running connector reads the same, and for rights that are lacking.
    """
    definition, target = place.definition, arrival.target
    app, site = target.side.pinned(), place.site
    keys = arrival.live()
    effect = compare_configs(before, definition.config, [key.partition for key in keys], readable=range(len(keys)))
    over = starts_over(definition.name, effect)
    if over is not None and not read_again:
        raise RefusedError(
            f"{over.message}; nothing was changed",
            hint=f"Leave out what changes its source partitions. {Waiver.READ_AGAIN} moves it, and it reads those from "
            "the beginning.",
        )
    twins = find_twins(definition, keys, site.connectors, {})
    if twins.certain:
        raise RefusedError(
            f"{', '.join(twins.certain)} runs in {target.side.where}, and reads source partitions that "
            f"{definition.name} would read, too; nothing was changed",
            hint=f"Stop it first: `{replace(target.side, connector=twins.certain[0]).command('stop')}`.",
        )
    made = bool(arrival.writes.creates)
    worker = target.side.worker()
    return [
        *(() if over is None else [over.as_warning()]),
        *other_workers(app, site, definition),
        *clashing_ids(app, definition),
        *rights_problems(app, definition.name, worker, config=definition.config, target=target.store, made=made),
    ]


def _missing_topics(here: Side, there: Side, config: Mapping[str, str], topics: Sequence[str]) -> list[Problem]:
    """Warn of output topics that are not on the Kafka cluster that the tasks there write to."""
    with here.of_tasks(here.require().config).topics() as reader:
        cluster_id, of_here = reader.cluster_id(), reader.describe(topics, configs=False)
    with there.of_tasks(config).topics() as reader:
        if reader.cluster_id() == cluster_id:
            return []
        of_there = reader.describe(topics, configs=False)
    lacking = [name for name in topics if name in of_here and name not in of_there]
    fewer = [name for name in topics if name in of_there and name in of_here
             and of_there[name].partitions != of_here[name].partitions]  # fmt: skip
    found = []
    if lacking:
        found.append(f"{', '.join(lacking[:5])} {'is' if len(lacking) == 1 else 'are'} not on the Kafka cluster there")
    if fewer:
        found.append(f"{', '.join(fewer[:5])}: the number of partitions differs there, so keys go to others")
    return [Problem(codes.TOPICS_NOT_THERE, text, hint=codes.TOPICS_NOT_THERE.next) for text in found]
