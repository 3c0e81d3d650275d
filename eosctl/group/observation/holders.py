"""The holders of a connector's parts, and the client settings that its config may override. Pure.

Parts are held by the group's own assignment, which REST's states may contradict.

Overrides follow `connector.client.config.override.policy` of the workers, and only their files report it. KIP-458
(None, Principal, All), KIP-1188 (Allowlist, Kafka 4.2; the default in 5.0).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from eosctl.core.findings import ERROR, INFO, Finding
from eosctl.core.java.properties import is_reference, split_list
from eosctl.core.versions import kafka_version
from eosctl.core.workers.modes import Mode
from eosctl.group import codes
from eosctl.group.observation.rules import Observation, ObservedConnector
from eosctl.group.observed import GroupObservation
from eosctl.group.protocol import CONNECTOR_ITSELF, Work

Assigned = Mapping[str, Sequence[Work]]
"""Worker id of a member -> its assigned work."""


def part_name(task: int) -> str:
    """Return the name of a task, or of the connector itself, in `ObservedConnector.states`."""
    return "connector" if task == CONNECTOR_ITSELF else f"task {task}"


def assigned_work(group: GroupObservation) -> Assigned | None:
    """Return the assigned work of each member of a stable group; None if any URL or work is unknown."""
    found: dict[str, Sequence[Work]] = {}
    for each in group.members:
        if each.member_id is None:
            continue
        if not group.stable or each.worker_id is None or each.connectors is None or each.tasks is None:
            return None
        work = [*((name, CONNECTOR_ITSELF) for name in each.connectors), *each.tasks]
        found[each.worker_id] = [*found.get(each.worker_id, ()), *work]
    return found if group.stable else None


def with_holders(connectors: Iterable[ObservedConnector], assigned: Assigned | None) -> tuple[ObservedConnector, ...]:
    """Return the connectors with the members to which their parts are assigned, as far as that is known."""
    if assigned is None:
        return tuple(connectors)
    held: dict[str, dict[str, str]] = {}
    for worker, work in assigned.items():
        for name, task in work:
            held.setdefault(name, {})[part_name(task)] = worker
    return tuple(replace(each, holders=held.get(each.name, {})) for each in connectors)


POLICY = "connector.client.config.override.policy"
ALLOWLIST = "connector.client.config.override.allowlist"
_FLUSH_TIMEOUT = "offset.flush.timeout.ms"
_CLIENTS = ("producer", "consumer", "admin")
_PRINCIPAL = ("sasl.jaas.config", "sasl.mechanism", "security.protocol")


class OverridePolicy(Struct, frozen=True):
    """`name` as the file has it, or the default; `allowed` are names without prefix, None: all."""

    name: str
    allowed: frozenset[str] | None

    def refuses(self, setting: str) -> bool:
        """Decide whether a connector's `producer.override.SETTING` and the like are refused."""
        return self.allowed is not None and setting not in self.allowed


def override_policy(
    files: Sequence[Mapping[str, str]], versions: Collection[tuple[int, int]] = ()
) -> OverridePolicy | None:
    """Return the common policy of all workers with these files; None if they differ, or if it is a custom class."""
    settings = {(file.get(POLICY, ""), file.get(ALLOWLIST, "")) for file in files}
    if len(settings) != 1 or any(is_reference(value) for pair in settings for value in pair):
        return None
    [(policy, allowlist)] = settings
    name = policy or _default(versions)
    simple = name.rpartition(".")[2].removesuffix("ConnectorClientConfigOverridePolicy").lower()
    known: Mapping[str, Collection[str] | None] = {
        "all": None, "none": (), "principal": _PRINCIPAL, "allowlist": split_list(allowlist),
    }  # fmt: skip
    if simple not in known:
        return None
    allowed = known[simple]
    return OverridePolicy(name, None if allowed is None else frozenset(allowed))


def _default(versions: Collection[tuple[int, int]]) -> str:
    """Return the default policy: None before Kafka 3.0 (KIP-722), Allowlist from 5.0 on, else All."""
    if versions and min(versions) >= (5, 0):
        return "Allowlist"
    return "None" if versions and max(versions) < (3, 0) else "All"


def policy_of(observation: Observation) -> OverridePolicy | None:
    """Return the policy of a group's workers, as far as their files show it."""
    versions = [version for each in observation.workers if (version := kafka_version(each.version))]
    return override_policy([file.properties for file in observation.files], versions)


def setting_to_change(client: str, setting: str, policy: OverridePolicy | None) -> str:
    """Return where to change a setting of a connector's client: its config, or the workers' files if refused there."""
    if policy is not None and policy.refuses(setting):
        return f"{client}.{setting} in the workers' files (their {POLICY} is {policy.name})"
    return f"{client}.override.{setting}"


def refused_overrides(connector: ObservedConnector, observation: Observation) -> Iterable[Finding]:
    """Yield a finding for overrides in the connector's config that the workers' policy refuses: it fails to start."""
    policy = policy_of(observation)
    if policy is None:
        return
    refused = [
        name
        for client in _CLIENTS
        for name in sorted(connector.config)
        if name.startswith(f"{client}.override.") and policy.refuses(name.removeprefix(f"{client}.override."))
    ]
    if refused:
        allowed = ",".join(sorted({name.split(".override.", 1)[1] for name in refused}))
        yield Finding(
            codes.OVERRIDE_REFUSED, ERROR, connector.name,
            f"{connector.name}: {POLICY}={policy.name} of the workers refuses {', '.join(refused)}: neither the "
            "connector nor its tasks start with that",
            f"Set it in the workers' files, without .override; or allow it there: {POLICY}=Allowlist with "
            f"{ALLOWLIST}={allowed} (Kafka 4.2), or {POLICY}=All.",
            {POLICY: policy.name, "refused": refused},
        )  # fmt: skip


def flush_timeouts(observation: Observation) -> Iterable[Finding]:
    """Yield a finding for each `offset.flush.timeout.ms` in workers' files, which exactly-once tasks ignore."""
    if not any(worker.mode is Mode.ENABLED for worker in observation.workers):
        return
    for file in observation.files:
        value = file.properties.get(_FLUSH_TIMEOUT)
        if value:
            yield Finding(
                codes.OVERRIDE_IGNORED, INFO, file.path,
                f"{file.path}: {_FLUSH_TIMEOUT}={value} has no effect on exactly-once tasks: their offsets are part of "
                "a transaction, which ends by its own timeout",
                "Nothing, if it is meant for other tasks; else producer.transaction.timeout.ms.",
                {_FLUSH_TIMEOUT: value},
            )  # fmt: skip
