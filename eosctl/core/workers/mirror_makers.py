"""Splits a dedicated MirrorMaker's file (mm2.properties) into the worker files that Kafka makes of it. Pure.

As `MirrorMakerConfig` (Kafka 4.3) does it, there is one for each flow: a worker has the properties of its target
cluster's alias, and of those without an alias only the few that are passed on. The mode is none of these: it is
`TARGET.exactly.once.source.support`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from eosctl.core.java.lists import split_list
from eosctl.core.java.properties import Properties, is_reference, trimmed
from eosctl.core.workers.modes import CONNECT_SETTING
from eosctl.errors import UsageError

CLUSTERS = "clusters"
_HEARTBEATS = "emit.heartbeats.enabled"
_PASSED_ON = (
    *("offset.storage", "config.storage", "status.storage", "key.converter", "value.converter", "header.converter"),
    *("task", "worker", "replication.policy", "config.providers"),
)
_CLIENT = ("bootstrap.servers", "security.", "ssl.", "sasl.")
"""Properties without an alias that apply to each cluster (`MirrorClientConfig.CLIENT_CONFIG_DEF`)."""


class Flow(Struct, frozen=True):
    """The copying from one cluster to another, by their aliases: a Connect group of its own at the target's brokers.

    One that is not `enabled` copies no topic; it only emits heartbeats.
    """

    source: str
    target: str
    enabled: bool

    def __str__(self) -> str:
        return f"{self.source}->{self.target}"


def is_mirror_maker_file(properties: Properties) -> bool:
    """Return whether this is the file of a dedicated MirrorMaker rather than of a Connect worker."""
    return CLUSTERS in properties.values


def flows_of(properties: Properties) -> list[Flow]:
    """Return every flow for which MirrorMaker starts a worker (`MirrorMakerConfig.clusterPairs`)."""
    values = {name: trimmed(value) for name, value in properties.values.items()}
    clusters = tuple(dict.fromkeys(split_list(values.get(CLUSTERS, ""))))
    found = []
    for source, target in ((source, target) for source in clusters for target in clusters if source != target):
        enabled = values.get(f"{source}->{target}.enabled", "").lower() == "true"
        heartbeats = values.get(f"{source}->{target}.{_HEARTBEATS}", values.get(_HEARTBEATS, "true"))
        if enabled or heartbeats.lower() == "true":
            found.append(Flow(source, target, enabled))
    return found


def worker_properties_of(properties: Properties, flow: Flow) -> Properties:
    """Return the properties that MirrorMaker passes to the worker of one flow, and the names of the clusters.

    (`MirrorMakerConfig.workerConfig`.) The settings of its three clients that repeat its own are left out.
    """
    own = f"{flow.target}."
    names = {name: name for name in properties.values if name.startswith(_CLIENT)}
    names |= {name.removeprefix(own): name for name in properties.values if name.startswith(own)}
    names |= {name: name for name in properties.values if name.startswith(_PASSED_ON)}
    names[CLUSTERS] = CLUSTERS
    values = {
        "client.id": str(flow),
        "group.id": f"{flow.source}-mm2",
        **{f"{kind}.storage.topic": f"mm2-{label}.{flow.source}.internal" for kind, label in _TOPICS.items()},
        **{name: properties.values[original] for name, original in names.items()},
    }
    lines = {name: properties.lines[original] for name, original in names.items() if original in properties.lines}
    return Properties(properties.source, values, lines)


_TOPICS = {"offset": "offsets", "status": "status", "config": "configs"}


def mode_property(flow: Flow) -> str:
    """Return the property that sets the mode of the flow's worker, and of every other worker with the same target."""
    return f"{flow.target}.{CONNECT_SETTING}"


def moved_together(properties: Properties, flow: Flow) -> list[str]:
    """Return the groups of the other flows with the same target: one property sets the mode of all their workers."""
    own = worker_properties_of(properties, flow).values["group.id"]
    others = (each for each in flows_of(properties) if each != flow and each.target == flow.target)
    return sorted({worker_properties_of(properties, each).values["group.id"] for each in others} - {own})


def idle_modes(properties: Properties, flow: Flow) -> Iterator[tuple[str, str]]:
    """Yield property names that seem to set the mode of the flow's worker, each with the one that does."""
    for name in (CONNECT_SETTING, f"{flow}.{CONNECT_SETTING}"):
        if name in properties.values:
            yield name, mode_property(flow)


def choose_flow(properties: Properties, *, group_id: str | None, servers: Sequence[str]) -> Flow:
    """Choose the flow of the given group and brokers, else the only one that copies.

    Raises UsageError if there is none, or several.
    """
    flows = {flow: worker_properties_of(properties, flow).values for flow in flows_of(properties)}
    left = [flow for flow, values in flows.items() if group_id is None or _may_be(values["group.id"], group_id)]
    for preferred in (
        [flow for flow in left if set(servers) & set(split_list(flows[flow].get("bootstrap.servers", "")))],
        [flow for flow in left if flow.enabled],
    ):
        kept = [flow for flow in preferred if flow in left]
        left = kept if len(left) > 1 and kept else left
    if len(left) == 1:
        return left[0]
    what = "several flows" if left else f"no flow of group {group_id}" if group_id and flows else "no flow"
    raise UsageError(
        f"{properties.source} is the file of a dedicated MirrorMaker with {what}{_listed(flows)}",
        hint="Give the group of the flow that is meant with -g, and its target's brokers with -b.",
    )


def _may_be(value: str, group_id: str) -> bool:
    """Return whether a value is the group, or a reference that only the worker can resolve."""
    return trimmed(value) == group_id or is_reference(value)


def _listed(flows: Mapping[Flow, Mapping[str, str]]) -> str:
    texts = [f"{flow} (group {values['group.id']})" for flow, values in flows.items()]
    return f": {', '.join(texts)}" if texts else ""
