"""Who deploys an object, by what each tool leaves in it, and who wrote a field, by `managedFields`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from eosctl.upgrade.drivers.manifests.fields import (
    Named,
    Path,
    Writer,
    field_words,
    nested,
    newest_writer,
    value_at,
    writers_of,
)
from eosctl.upgrade.drivers.manifests.pods import LAST_APPLIED, Deployer, origin_of_field, writer_words

ENV: Path = ("spec", "template", "spec", "containers", Named("connect"), "env", Named("X"), "value")
KEYS = (
    "f:spec", "f:template", "f:spec", "f:containers", 'k:{"name":"connect"}', "f:env", 'k:{"name":"X"}', "f:value",
)  # fmt: skip
FILE: Path = ("data", "connect.properties")


def entry(manager: str, keys: tuple[str, ...], *, time: str = "t1", operation: str = "Update") -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key in reversed(keys):
        fields = {key: fields}
    return {"manager": manager, "operation": operation, "time": time, "fieldsV1": fields}


def manifest(*entries: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"managedFields": [*entries], **metadata}}


def applied(path: Path) -> dict[str, str]:
    return {LAST_APPLIED: json.dumps(nested(path, "v"))}


RELEASE = {"meta.helm.sh/release-name": "r", "meta.helm.sh/release-namespace": "ns"}
HELM = Deployer("Helm", "release r in ns")
ARGO = {"argocd.argoproj.io/tracking-id": "shop:apps/StatefulSet:ns/connect"}
FLUX = {"helm.toolkit.fluxcd.io/name": "h", "helm.toolkit.fluxcd.io/namespace": "flux"}


@pytest.mark.parametrize(
    ("given", "deployer", "held"),
    [
        (manifest(), None, None),
        (manifest(entry("kubectl-create", KEYS)), None, None),
        (manifest(entry("kubectl-set", KEYS)), None, None),
        (manifest(entry("Terraform", KEYS)), Deployer("Terraform"), True),
        (manifest(entry("helm", KEYS), annotations=RELEASE), HELM, True),
        (manifest(entry("helm", (*KEYS[:5], ".")), annotations=RELEASE), HELM, False),
        # the value is the one's who wrote it last, the variable still the chart's
        (manifest(entry("helm", KEYS[:-1]), entry("kubectl-set", KEYS), annotations=RELEASE), HELM, True),
        # Argo CD renders the chart, and kubectl's annotation is its own
        (
            manifest(entry("argocd-controller", KEYS), annotations={**RELEASE, **ARGO, **applied(ENV)}),
            Deployer("Argo CD", "application shop"),
            True,
        ),
        (
            manifest(labels={"argocd.argoproj.io/instance": "shop"}, annotations=applied(("spec",))),
            Deployer("Argo CD", "application shop"),
            False,
        ),
        (manifest(entry("argocd-controller", KEYS)), Deployer("Argo CD"), True),
        (manifest(entry("helm-controller", KEYS), labels=FLUX, annotations=RELEASE),
         Deployer("Flux", "HelmRelease flux/h"), True),
        (manifest(entry("kustomize-controller", KEYS)), Deployer("Flux"), True),
        (manifest(annotations=applied(ENV)), Deployer("kubectl apply"), True),
        (manifest(annotations=applied(("spec", "replicas"))), Deployer("kubectl apply"), False),
        (manifest(annotations={LAST_APPLIED: "{"}), Deployer("kubectl apply"), None),
        (manifest(entry("kubectl", KEYS, operation="Apply")), Deployer("kubectl apply"), True),
    ],
)  # fmt: skip
def test_who_deploys_it(given: dict[str, Any], deployer: Deployer | None, held: bool | None) -> None:
    """Nothing was said of it, and the next deploy brought the former mode back."""
    origin = origin_of_field("statefulset/connect", given, ENV, words="x")
    assert (origin.deployer, origin.held) == (deployer, held)


def test_a_value_that_another_wrote_says_nothing_of_a_file_s_manifest() -> None:
    given = manifest(entry("kubectl-patch", ("f:data", "f:connect.properties")), annotations=RELEASE)
    assert origin_of_field("configmap/c", given, FILE, words="x").held is None


def test_what_is_to_be_changed() -> None:
    def words(given: dict[str, Any]) -> str:
        return origin_of_field("statefulset/connect", given, ENV, words=field_words(ENV)).words(
            ["preparing", "enabled"]
        )

    field = "spec.template.spec.containers[connect].env[X].value"
    assert words(manifest()) == (
        f"statefulset/connect does not say what deploys it: where it is deployed from, {field} must be preparing, "
        "then enabled"
    )
    assert words(manifest(annotations=applied(("spec",)))) == (
        f"statefulset/connect is deployed by kubectl apply, which does not set {field}: add it there (preparing, then "
        "enabled), or a new install lacks it"
    )
    assert words(manifest(entry("Terraform", KEYS))) == (
        f"statefulset/connect is deployed by Terraform: {field} must be preparing, then enabled. Change it there, or "
        "its next deploy takes it back."
    )


def test_who_wrote_a_field() -> None:
    status = {**entry("controller", ("f:status",), time="t9"), "subresource": "status"}
    whole = entry("operator", KEYS[:4], time="t3")  # a list that is owned as one
    given = manifest(entry("b", KEYS, time="t2"), entry("a", KEYS[:-1], time="t1"), whole, status)
    assert [each.manager for each in writers_of(given, ENV)] == ["a", "b", "operator"]
    assert [each.manager for each in writers_of(given, (*ENV[:-2], Named("Y")))] == ["operator"]
    newest = newest_writer(given)
    assert newest is not None
    assert newest.manager == "operator"
    assert newest_writer({}) is None
    assert writer_words(Writer("kustomize-controller", "Apply", "t")) == "Flux (kustomize-controller)"
    assert writer_words(Writer("someone", "Update", "t")) == "someone"


def test_fields_and_their_patches() -> None:
    assert field_words(("data", "connect.properties")) == 'data["connect.properties"]'
    assert field_words(("spec", "clusters", 1, "config")) == "spec.clusters[1].config"
    body = nested(ENV, "v")
    assert body["spec"]["template"]["spec"]["containers"] == [{"name": "connect", "env": [{"name": "X", "value": "v"}]}]
    assert value_at(body, ENV) == "v"
    assert value_at({"spec": {"clusters": [{"a": 1}]}}, ("spec", "clusters", 0, "a")) == 1
    assert value_at({"spec": 1}, ENV) is None
    with pytest.raises(TypeError, match=r"spec.clusters\[1\].config: a patch can't name an element by its place"):
        nested(("spec", "clusters", 1, "config"), {})
