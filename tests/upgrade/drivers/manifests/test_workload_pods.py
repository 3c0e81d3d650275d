"""Which pods are which members: by address, by name, and never by the name of another namespace's pod."""

from __future__ import annotations

import pytest

from eosctl.upgrade.drivers.manifests.pods import Member, Pod, judge_workload, match_pods

PODS = tuple(
    Pod(f"connect-{n}", "prod", "statefulset/connect", (f"10.0.0.{n}", f"fd00::{n}"), f"connect-{n}", ready=True)
    for n in (1, 2)
)


@pytest.mark.parametrize(
    ("url", "client_host", "found"),
    [
        ("http://10.0.0.1:8083", None, True),
        ("http://[fd00::1]:8083", None, True),
        ("http://connect-1:8083", None, True),
        ("http://connect-1.connect.prod.svc.cluster.local:8083", None, True),
        ("http://connect-1.connect.prod.svc:8083", None, True),
        ("http://connect-1.example.com:8083", None, True),
        ("http://connect:8083", "/10.0.0.1", True),  # a Service's name; Kafka sees the pod's address
        (None, "/10.0.0.1", True),  # while a group rebalances it tells nobody's URL
        ("http://connect-1.connect.dev.svc.cluster.local:8083", None, False),
        ("http://connect:8083", "/192.0.2.7", False),
        ("http://10.0.0.9:8083", "10.0.0.9", False),
        (None, None, False),
    ],
)
def test_a_member_is_found_by_its_address_or_its_name(url: str | None, client_host: str | None, found: bool) -> None:
    matched = match_pods(PODS, [Member(url, client_host)])
    assert matched.count == int(found)
    assert [pod.name for pod in matched.pods] == (["connect-2"] if found else ["connect-1", "connect-2"])


def test_a_pod_is_one_members_only() -> None:
    matched = match_pods(PODS, [Member("http://connect-1:8083", None), Member("http://10.0.0.1:8084", None)])
    assert (matched.count, matched.members) == (1, ("http://10.0.0.1:8084",))


@pytest.mark.parametrize("complete", [True, False])
def test_a_pod_without_a_member_matters_on_the_way_up(complete: bool) -> None:
    broken = Pod("connect-3", "prod", "w", (), "connect-3", ready=False, reason="CrashLoopBackOff")
    members = [Member(f"http://{pod.name}:8083", None) for pod in PODS]
    gate = judge_workload(["w"], [*PODS, broken], members, accepted=False, complete=complete)
    assert gate.stops_apply is complete
    told = "no member of the group is in connect-3 (CrashLoopBackOff)"
    assert gate.evidence == (told if complete else "2 of 2 members are in the pods of w")
