"""The rights that the target of an upgrade needs, from the cluster's ACLs: `acls check` as a gate.

They are checked before the first restart, as a worker without rights on its leader's id stops the whole group, and an
admin client that may not fence is noticed only at the next reconfiguration. Unknown rights are left open, and stop
nobody.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from eosctl.acls.check import acl_findings, judge_all, split_lacking
from eosctl.acls.rules import AclIndex, RightJudgement
from eosctl.acls.wanted import gather_wanted
from eosctl.app import App
from eosctl.core.acls.request import AclRequest
from eosctl.core.configs.fold import ConnectorState
from eosctl.core.workers.connector_entry import plugin_type
from eosctl.core.workers.modes import Mode
from eosctl.errors import EosctlError, InterruptedByUserError, UnsupportedError, UsageError
from eosctl.group.observation.rules import Observation, RightsSeen

_OWN_LOGIN = re.compile(r"(producer|consumer|admin)\.override\.(sasl\.|ssl\.|security\.|bootstrap\.servers$)")


def with_rights(app: App, observation: Observation) -> Observation:
    """Add what the ACLs say of the rights or, if they can't be read or judged, the reason."""
    if observation.target is Mode.DISABLED:
        return observation
    if app.target.client is None:
        return observation.without(["rights"], "no Kafka cluster was named")
    try:
        return replace(observation, rights=_seen(app, observation))
    except InterruptedByUserError:
        raise
    except UsageError as exc:
        return observation.without(["rights"], f"the rights can't be judged: {exc.message}")
    except EosctlError as exc:
        return observation.without(["rights"], exc.message)


def _seen(app: App, observation: Observation) -> RightsSeen:
    with app.acls() as store:
        try:
            acls = AclIndex(store.describe())
        except UnsupportedError:
            return RightsSeen()
    if observation.config_state is None:
        raise EosctlError(observation.why_unseen("config topic"))
    connectors = observation.config_state.connectors
    own_login = _own_logins(connectors)
    names = tuple(name for name in _sources(connectors) if name not in own_login)
    request = AclRequest(connectors=names, mode=observation.target.value)
    wanted = gather_wanted(app, request, look=False, connectors=connectors)
    wanted.require_principals()
    judgements, problems = judge_all(app, wanted, acls, known_topics=observation.topics or ())
    lacking, unsure = split_lacking(app, judgements, acls)
    return RightsSeen(
        judged=len(judgements),
        lacking=_sentences(app, lacking),
        unsure=(
            *_sentences(app, unsure),
            *(f"{name} logs in with {setting}, so its rights are not judged" for name, setting in own_login.items()),
            *(problem.message for problem in (*wanted.problems, *problems)),
        ),
    )


def _sources(connectors: Mapping[str, ConnectorState]) -> list[str]:
    return sorted(name for name, state in connectors.items() if plugin_type(state.config or None) == "source")


def _own_logins(connectors: Mapping[str, ConnectorState]) -> dict[str, str]:
    """Return each source connector whose clients log in differently or elsewhere, with the first property for it."""
    found = {}
    for name in _sources(connectors):
        settings = sorted(key for key in connectors[name].config or {} if _OWN_LOGIN.match(key))
        if settings:
            found[name] = settings[0]
    return found


def _sentences(app: App, judgements: Sequence[RightJudgement]) -> tuple[str, ...]:
    return tuple(f"{finding.subject}: {finding.message}" for finding in acl_findings(app, judgements))
