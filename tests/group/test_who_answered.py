"""Who answered: two members whose requests may reach one worker are not proven by what answers there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from eosctl.group.addresses import Route, explain_doubt, shared_routes
from tests.conftest import Invoke
from tests.fakes.config_topic import config_records, created
from tests.fakes.config_world import ConfigWorld
from tests.fakes.doctor_scene import W1, W2, WHERE, cluster

LB, OTHER = "http://lb:8083", "http://other:8083"
ONE_ADDRESS = ("--connect-map", "w1=10.0.0.9", "--connect-map", "w2=10.0.0.9:8083")


def mixed() -> ConfigWorld:
    """W1 is enabled, and W2, which runs the source task orders/0, is not."""
    records = config_records(*created("orders", 1, record=1), *created("items", 1, record=1))
    connectors = {"orders": "source", "items": "source"}
    ids = ("connect-cluster-g", "g-orders-0", "g-items-0")
    there = cluster(modes={W1: "enabled", W2: "disabled"}, records=records, connectors=connectors, known_ids=ids)
    there.connect.own(W2, ("orders", 0), ("orders", -1))
    there.connect.own(W1, ("items", 0), ("items", -1))
    there.connect.forwarded = dict.fromkeys((LB, "http://127.0.0.1:8083", "http://10.0.0.9:8083"), W1)
    return there


@pytest.mark.parametrize(
    "words",
    [
        ("--connect-map", "w*:8083=http://lb:8083"),
        ("--connect-map", "w1=lb", "--connect-map", "w2=lb"),
        ("--connect-map", "*=127.0.0.1:8083"),
        ONE_ADDRESS,
    ],
)
def test_a_map_that_leads_two_members_to_one_address_proves_neither(invoke: Invoke, words: Sequence[str]) -> None:
    """The worker that answered was taken for both, and the group for exactly-once, with exit 0."""
    there = mixed()

    def run(*command: str) -> tuple[int, Any]:
        out = invoke(*command, *WHERE, *words, "-o", "json", **there.surroundings)
        return out.exit_code, out.json()

    code, verified = run("upgrade", "verify", "--to", "enabled")
    assert (code, verified["data"]["summary"]["proven"]) == (3, 0)
    found = {row["code"]: row["evidence"].get("status") for row in verified["data"]["rows"]}
    assert found["members_known"] == "fail"
    assert found["worker_versions"] == found["worker_health"] == "unknown"
    assert "mode_unproven" in found
    _code, probed = run("workers", "probe")
    assert [row["mode"] for row in probed["data"]["rows"]] == ["unknown", "unknown"]
    assert "shared_url" in [each["code"] for each in probed["errors"]]
    code, _found = run("doctor", "--strict")
    assert code == 3


def test_names_that_lead_to_one_address_prove_neither(invoke: Invoke) -> None:
    """Two advertised names of one load balancer: no request of ours said so, and both were proven."""
    there = mixed()
    there.addresses |= {"w1": {"10.0.0.9"}, "w2": {"10.0.0.9", "10.0.0.8"}}
    rows = invoke("workers", "probe", *WHERE, "-o", "json", **there.surroundings).json()["data"]["rows"]
    assert [row["mode"] for row in rows] == ["unknown", "unknown"]
    there.addresses |= {"w2": {"10.0.0.8"}}
    rows = invoke("workers", "probe", *WHERE, "-o", "json", **there.surroundings).json()["data"]["rows"]
    assert [row["mode"] for row in rows] == ["enabled", "not_enabled"]


def test_a_u_for_each_is_named_and_proves_them(invoke: Invoke) -> None:
    """The fix of the finding is taken by the same command."""
    there = mixed()
    there.connect.hosts = {W1: "10.0.0.1", W2: "10.0.0.2"}
    there.connect.forwarded |= {"http://10.0.0.1:8083": W1, "http://10.0.0.2:8083": W2}
    shared = ("--connect-map", "w*:8083=http://lb:8083")
    probed = invoke("workers", "probe", *WHERE, *shared, "-o", "json", **there.surroundings).json()
    [hint] = [each["hint"] for each in probed["errors"] if each["code"] == "shared_url"]
    own = ("-u", "http://10.0.0.1:8083", "-u", "http://10.0.0.2:8083")
    assert " ".join(own) in hint
    probed = invoke("workers", "probe", *WHERE, *shared, *own, "-o", "json", **there.surroundings).json()
    assert [row["mode"] for row in probed["data"]["rows"]] == ["enabled", "not_enabled"]
    assert "shared_url" not in [each["code"] for each in probed["errors"]]


def test_a_map_that_leads_to_another_group_proves_nothing(invoke: Invoke) -> None:
    """What the other group's worker said of itself was the member's mode."""
    there = mixed()
    other = there.other_group("h", OTHER)
    other.add("unrelated")
    words = ("--connect-map", f"{W2}={OTHER}")
    probed = invoke("workers", "probe", *WHERE, *words, "-o", "json", **there.surroundings).json()
    assert [(row["url"], row["mode"]) for row in probed["data"]["rows"]] == [(W1, "enabled"), (W2, "unknown")]
    assert [each["code"] for each in probed["errors"]] == ["other_group"]
    verified = invoke("upgrade", "verify", "--to", "enabled", *WHERE, *words, **there.surroundings)
    assert verified.exit_code == 3


def route(name: str, reached: str, *, advertised: str | None = None, host: str = "10.0.0.1") -> Route:
    return Route(name, host, advertised or reached, reached)


LOCAL = route("local", "http://localhost:8083")


@pytest.mark.parametrize(
    ("one", "other", "is_shared"),
    [
        (route("a", "http://w1:8083"), route("b", "http://w2:8083"), False),
        (route("a", "http://w1:8083"), route("b", "http://w1:8084"), False),
        (route("a", "https://w1:8083"), route("b", "http://w1:8083"), True),
        (route("a", "http://vip-1:8083"), route("b", "http://vip-2:8083"), True),
        (route("a", "http://vip-1:8083"), route("b", "http://10.0.0.9:8083"), True),
        (route("a", "http://[fe80::1]:8083"), route("b", "http://[fe80:0::1]:8083"), True),
        (route("a", "http://gateway:80/w1"), route("b", "http://gateway:80/w2"), False),
        (LOCAL, route("b", "http://w2:8083"), True),
        (LOCAL, route("b", "http://w2:8084"), False),
        (replace(LOCAL, client_host="127.0.0.1"), route("b", "http://w2:8083"), False),
        (replace(LOCAL, advertised="http://w1:8083"), route("b", "http://w2:8083"), False),
    ],
)
def test_which_routes_may_lead_to_one_worker(one: Route, other: Route, is_shared: bool) -> None:
    addresses = {"vip-1": ["10.0.0.9"], "vip-2": ["10.0.0.8", "10.0.0.9"]}
    found = shared_routes([one, other], addresses)
    assert [[each.member_id for each in together] for together in found] == (
        [[one.member_id, other.member_id]] if is_shared else []
    )


def test_a_chain_of_shared_addresses_is_one() -> None:
    routes = [route(name, f"http://{name}:8083", host=name) for name in ("a", "b", "c", "d")]
    addresses = {"a": ["1.1.1.1"], "b": ["1.1.1.1", "2.2.2.2"], "c": ["2.2.2.2"], "d": ["3.3.3.3"]}
    [together] = shared_routes(routes, addresses)
    assert {each.member_id for each in together} == {"a", "b", "c"}
    assert explain_doubt(together).startswith("3 members")
