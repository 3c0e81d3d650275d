"""Checks the rights of a connector on the topic that it is to keep its offsets in, before anything is changed.

A connector's clients must be allowed to use the topic that its offsets are to move to, as far as ACLs can be read.
Without READ on it a worker (4.3.1) polls in a hot loop, and without WRITE a task fails at its first commit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec.structs import replace

from eosctl.acls.check import acl_findings, judge_all, split_lacking
from eosctl.acls.rules import AclIndex
from eosctl.acls.wanted import gather_wanted
from eosctl.app import App
from eosctl.connectors.dedicated import TOPIC_PROPERTY
from eosctl.connectors.look import topic_of
from eosctl.core.acls.lines import AclRequest
from eosctl.core.java.keystores import parse_jaas
from eosctl.core.offsets.names import GLOBAL
from eosctl.core.workers.modes import Mode
from eosctl.errors import EosctlError, RefusedError, UnsupportedError
from eosctl.foreign import Lines
from eosctl.group.modes import probe_mode
from eosctl.offsets import codes
from eosctl.ports import ConnectWorker
from eosctl.report import Problem


def changed_config(config: Mapping[str, str], target: str) -> dict[str, str]:
    """Return `config` with `offsets.storage.topic` set or removed for `target`; change nothing else."""
    rest = {name: value for name, value in config.items() if name != TOPIC_PROPERTY}
    return rest if target == GLOBAL else {**rest, TOPIC_PROPERTY: target}


_ROLES = ("producer", "consumer", "admin")
_JAAS = "sasl.jaas.config"
_LOGIN = re.compile(r"(sasl|ssl|security)\.")


def rights_problems(
    app: App, connector: str, worker: ConnectWorker, *, config: Mapping[str, str], target: str, made: bool
) -> list[Problem]:
    """Warn of rights that may be lacking; raise RefusedError for those that certainly are.

    `target` is a topic or `global`; `made`: eosctl creates the topic. The config shows whether the connector's clients
    log in as the worker's do.
    """
    try:
        with app.acls() as store:
            acls = AclIndex(store.describe())
        if target == GLOBAL and probe_mode(worker)[0] is Mode.NOT_ENABLED:
            return []  # only the worker itself uses that topic
        return _judge(app, connector, acls, config=config, topic=topic_of(app, target), made=made)
    except UnsupportedError:  # no authorizer
        return []
    except RefusedError:
        raise
    except EosctlError as exc:
        return [_unknown(connector, f"the ACLs can't be read: {exc.message}")]


def _judge(
    app: App, connector: str, acls: AclIndex, *, config: Mapping[str, str], topic: str, made: bool
) -> list[Problem]:
    request = AclRequest(roles=_ROLES, connectors=(connector,), tasks=(1,), dedicated_topic=topic)
    wanted = gather_wanted(app, request, look=False)
    principals = {role: _principal(config, role, wanted.principals.get(role)) for role in _ROLES}
    known = {role: principal for role, principal in principals.items() if principal is not None}
    unknown = [role for role in _ROLES if role not in known]
    problems = [_unknown(connector, f"the principal of its {', '.join(unknown)} is unknown")] if unknown else []
    rights = [
        right
        for right in wanted.rights
        if right.role in known and (right.resource_type, right.name) == ("Topic", topic) and not right.optional
    ]
    judgements, more = judge_all(
        app, replace(wanted, rights=rights, principals=known), acls, known_topics=[topic] if made else []
    )
    lacking, unsure = split_lacking(app, judgements, acls)
    if lacking:
        findings = acl_findings(app, lacking)
        raise RefusedError(
            f"{connector} could not use topic {topic}: "
            f"{'; '.join(f'{each.subject}: {each.message}' for each in findings)}; nothing was changed",
            hint=Lines.of(*(each.fix for each in findings)),
        )
    warnings = [
        Problem(codes.RIGHTS_UNSURE, f"{each.subject}: {each.message}", hint=each.fix)
        for each in acl_findings(app, unsure)
    ]
    return [*problems, *more, *warnings]


def _principal(config: Mapping[str, str], role: str, of_worker: str | None) -> str | None:
    """Return the principal of the connector's client: by its own login, else that of the worker; None if unknown."""
    prefix = f"{role}.override."
    own = {name.removeprefix(prefix): value for name, value in config.items() if name.startswith(prefix)}
    if not any(_LOGIN.match(name) for name in own):
        return of_worker
    try:
        user = parse_jaas(own.get(_JAAS, "")).options.get("username")
    except ValueError:
        return None
    return f"User:{user}" if user and "${" not in user else None


def _unknown(connector: str, reason: str) -> Problem:
    return Problem(
        codes.RIGHTS_UNKNOWN,
        f"whether {connector} may use that topic is not known: {reason}",
        hint="-w names the worker's file, which has the principals; `eosctl acls check` checks all rights.",
    )
