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
_KINDS = "statefulset/, deployment/, kafkaconnect/ or kafkamirrormaker2/NAME"


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
        named = click.option(
            "--container", metavar="NAME", help=f"{prefix}the worker's container, where its variables do not tell."
        )(function)
        return click.option("--env-name", metavar="NAME", help=f"{prefix}the variable that sets the mode in the pods.")(
            named
        )

    return add


def kubernetes_driver_of(app: App, given: Mapping[str, Any], *, only_look: bool = False) -> KubernetesDriver | None:
    """The driver for the workloads that are named; None where none is. `only_look`: they need not be fit for a change.

    Raises what `kubernetes_driver` raises, and UsageError for options that only a workload gives a meaning to.
    """
    from eosctl.ops.upgrade_drivers.kubectl import Kubectl
    from eosctl.ops.upgrade_drivers.kubernetes import kubernetes_driver, named_workloads

    if not given["workload"]:
        alone = [name for name, value in given.items() if value]
        if alone:
            raise UsageError(f"--{alone[0].replace('_', '-')} needs --workload")
        return None
    kubectl = Kubectl(given["namespace"], given["context"], given["kubeconfig"])
    if only_look:
        return named_workloads(app, given["workload"], kubectl)
    return kubernetes_driver(app, given["workload"], kubectl, variable=given["env_name"], container=given["container"])
