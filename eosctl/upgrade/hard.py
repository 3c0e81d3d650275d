"""The downgrade to an older Connect, besides its mode: offsets, aborted records, and one or two rolls.

An older worker (below 3.3) knows no `offsets.storage.topic`, no task-count records and no fencing, and it reads aborted
records. Everything it should find has to be in the global topic, committed. Plans only; reads and writes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import convert

from eosctl.core.clients.own_brokers import CLUSTER_PROPERTY
from eosctl.core.configs.records import OFFSETS_TOPIC
from eosctl.core.ids import connector_path, stop_request
from eosctl.foreign import arguments, shell_word
from eosctl.group.observation.rules import Observation, ObservedConnector
from eosctl.upgrade.hard_rows import (
    AbortedConfigPart,
    AbortedOffsetsPart,
    HardPart,
    OffsetsCopyPart,
    RepairRecord,
    Variant,
)

REPAIR_FILE = "repair.ndjson"


def plan_hard_downgrade(observation: Observation) -> HardPart:
    """Plan `data.hard`: what to copy, what to repair, and both variants; `unknown` has what was not seen."""
    looked_at = {
        "connectors": observation.connectors,
        "aborted offsets": observation.aborted_offsets,
        "config topic": observation.differing_connectors,
    }
    return HardPart(
        offsets=[row for each in observation.sources() if (row := _offsets_row(each, observation)) is not None],
        aborted_offsets=_aborted_offsets(observation),
        aborted_configs=[_aborted_config(name, observation) for name in observation.differing_connectors or ()],
        variants=[_TWO_STEP, _ONE_STEP],
        unknown=[f"{what}: {observation.why_unseen(what)}" for what, seen in looked_at.items() if seen is None],
    )


def _offsets_row(connector: ObservedConnector, observation: Observation) -> OffsetsCopyPart | None:
    """Return how the connector's own offsets get into the global topic; None if they are already there."""
    topic, elsewhere = connector.config.get(OFFSETS_TOPIC), connector.config.get(CLUSTER_PROPERTY)
    if elsewhere is None and topic in (None, "", observation.offset_topic):
        return None
    quoted, there = shell_word(connector.name), topic or observation.offset_topic
    if elsewhere is not None:
        store = shell_word(f"{there}@PROFILE")
        commands = [f"eosctl offsets merge --connector {quoted} --into global --from {store} --prefer dedicated"]
        note = f"its offsets lie on the cluster {elsewhere}: PROFILE is a profile that leads there. Stop it first."
    else:
        commands = [
            f"eosctl offsets switch --connector {quoted} --to global",
            f"eosctl offsets merge --connector {quoted} --into global",
        ]
        note = "the first moves it for good; the second will do if it is STOPPED until the older version runs."
    return OffsetsCopyPart(
        connector=connector.name, offsets_topic=there, cluster=elsewhere, commands=commands, note=note
    )


def _aborted_offsets(observation: Observation) -> AbortedOffsetsPart:
    """Return the committed records to write again; older workers would start from the aborted ones and skip records."""
    records = [convert(each.repair(), RepairRecord) for each in observation.aborted_offsets or ()]
    again = "eosctl upgrade plan --to disabled --hard -o json"
    commands = [
        f"{again} | jq -c '.data.hard.aborted_offsets.records[]' > {REPAIR_FILE}",
        f"eosctl offsets import {REPAIR_FILE} --store global --keep-partitions --rewrite",
    ]
    return AbortedOffsetsPart(records=records, commands=commands if records else [])


def _aborted_config(name: str, observation: Observation) -> AbortedConfigPart:
    """Return the steps that make the leader write the committed state of a connector again, as the newest record."""
    there = {each.name for each in observation.connectors or ()}
    url = connector_path(name)
    if name in there:
        # a stop and a resume write every record of it again: task configs, commit, task-count record, target state
        steps = [
            f"eosctl connectors stop {arguments(name)}",
            f"GET {url}/config, PUT {url}/config with the same body",
            f"eosctl connectors resume {arguments(name)}; then eosctl connectors stop or pause, as it was",
        ]
    else:
        steps = [f'POST /connectors with the name {name} and "initial_state": "STOPPED"', f"DELETE {url}"]
    return AbortedConfigPart(connector=name, exists=name in there, steps=steps)


_COMMON: Sequence[str] = (
    "eosctl offsets export --store global FILE, and each dedicated topic: the way back if offsets are lost",
    f"stop every source connector ({stop_request()}), and fence its ids (eosctl fence --connector NAME)",
    "copy the offsets of connectors with a topic of their own into the global one: data.hard.offsets",
    "write committed records again where aborted ones are the newest: data.hard.aborted_offsets and aborted_configs",
    "plan again: no_aborted_records, no_aborted_offsets and no_open_transactions must pass",
)
_TWO_STEP = Variant(
    name="two_step",
    recommended=True,
    steps=[
        *_COMMON,
        "restart worker by worker with preparing, then with disabled: the passes of this plan, still on this version",
        "resume the connectors and see that they go on where they were",
        "install the older version worker by worker",
    ],
    risks=[
        "Three rolling restarts. After the first worker of the first, nothing is exactly-once any more.",
        "Until the last, each step can be taken back; after it, offsets live in the global topic only.",
    ],
)
_ONE_STEP = Variant(
    name="one_step",
    recommended=False,
    steps=[
        *_COMMON,
        "stop every worker, and see that the group is empty (eosctl workers list)",
        "install the older version everywhere, without exactly.once.source.support",
        "start the workers and resume the connectors",
    ],
    risks=[
        "Every connector, sinks too, stands still from the first worker's stop to the last one's start.",
        "It must not be done as a roll: an old worker beside an enabled one can lead without transactions, and nothing "
        "can fence its tasks.",
        "No gate looks at the result before the older version runs, and it reads every aborted record that was missed.",
        "It logs an error per task-count record (invalid key tasks-fencing-…), which is harmless.",
    ],
)
