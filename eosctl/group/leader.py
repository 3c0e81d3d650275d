"""The leader of a Connect group: its REST interface, and the signature that identifies a member to it."""

from __future__ import annotations

import base64
import binascii
import json

from eosctl.app import App
from eosctl.connect.signing import signature_headers
from eosctl.core.workers.url import parse_worker_url
from eosctl.errors import ConnectError
from eosctl.group.gather import read_group
from eosctl.ports import ConnectWorker

_SESSION_KEY = b"session-key"


def leader_worker(app: App) -> ConnectWorker:
    """Return the leader's REST interface, as a follower would forward without the signature; raise ConnectError."""
    group, _cluster_id = read_group(app)
    if group.leader_url is None:
        raise ConnectError(f"group {group.group_id} has no leader now", hint="A rebalance is going on; run again.")
    leader = parse_worker_url(group.leader_url).text
    given = {parse_worker_url(url).text: url for url in app.target.connect_urls}  # may carry credentials
    return app.worker(given.get(leader, leader))


def session_headers(app: App) -> dict[str, str]:
    """Return the headers that sign an empty body with the group's newest session key; return none without a key."""
    with app.topics() as store:
        records = store.read(app.target.config_topic, newest_per_key=True).records
    value = next((record.value for record in reversed(records) if record.key == _SESSION_KEY), None)
    if value is None:
        return {}
    try:
        return signature_headers(base64.b64decode(json.loads(value)["key"], validate=True))
    except (ValueError, KeyError, TypeError, RecursionError, binascii.Error) as exc:
        raise ConnectError(
            f"the session key in topic {app.target.config_topic} can't be read",
            hint="Is it the config topic of this group?",
        ) from exc
