"""The options that say where in Kubernetes the workers run, and the driver that they make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from eosctl.errors import UsageError
from eosctl.ops.app import App

if TYPE_CHECKING:
    from eosctl.ops.upgrade_drivers.kubernetes import KubernetesDriver

_F = TypeVar("_F", bound=Callable[..., Any])
_KINDS = (
    "statefulset/, deployment/, kafkaconnect/, kafkamirrormaker2/ or (of Confluent's operator, untried) connect/NAME"
)

_POD_OPTIONS = (
    ("--env-name", "NAME", "the variable that sets the mode in the pods, or the one that has all properties."),
    ("--container", "NAME", "the worker's container, where its variables do not tell."),
    ("--configmap", "NAME", "the ConfigMap with the properties file that the pods mount, where that sets the mode."),
    ("--key", "KEY", "the key of the ConfigMap that is the properties file."),
)


def place_options(what: str, *, prefix: str = "") -> Callable[[_F], _F]:
    """Adds --workload, whose help ends with `what`, and how kubectl gets there."""

    def add(function: _F) -> _F:
        for option in (
            click.option("--kubeconfig", metavar="PATH", help=f"{prefix}kubectl's configuration file."),
            click.option("--context", metavar="NAME", help=f"{prefix}the context of kubectl's configuration."),
            click.option("--namespace", metavar="NAME", help=f"{prefix}the namespace."),
            click.option("--workload", multiple=True, metavar="KIND/NAME", help=f"{prefix}{_KINDS}; {what}"),
        ):
            function = option(function)
        return function

    return add


def pod_options(*, prefix: str = "") -> Callable[[_F], _F]:
    """Adds how the mode is set in a pod."""

    def add(function: _F) -> _F:
        for name, metavar, words in reversed(_POD_OPTIONS):
            function = click.option(name, metavar=metavar, help=f"{prefix}{words}")(function)
        return function

    return add


def kubernetes_driver_of(
    app: App, given: Mapping[str, Any], *, only_look: bool = False, watches: bool = False
) -> KubernetesDriver | None:
    """The driver for the workloads that are named; None where none is. `only_look`: they need not be fit for a change.

    `watches`: somebody else changes them.

    Raises what `kubernetes_driver` raises, and UsageError for options that only a workload gives a meaning to.
    """
    from eosctl.ops.upgrade_drivers.kubectl import Kubectl
    from eosctl.ops.upgrade_drivers.kubernetes import kubernetes_driver, named_workloads
    from eosctl.ops.upgrade_drivers.mode_places import MountedProperties

    if not given["workload"]:
        alone = [name for name, value in given.items() if value]
        if alone:
            raise UsageError(f"--{alone[0].replace('_', '-')} needs --workload")
        return None
    kubectl = Kubectl(given["namespace"], given["context"], given["kubeconfig"])
    if only_look:
        return named_workloads(app, given["workload"], kubectl)
    if (given["configmap"] is None) != (given["key"] is None):
        raise UsageError("--configmap and --key go together")
    if given["configmap"] is not None and given["env_name"] is not None:
        raise UsageError("--configmap and --env-name contradict each other: the mode stands in one place")
    return kubernetes_driver(
        app,
        given["workload"],
        kubectl,
        variable=given["env_name"],
        container=given["container"],
        file=MountedProperties(given["configmap"], given["key"]) if given["configmap"] else None,
        watches=watches,
    )
