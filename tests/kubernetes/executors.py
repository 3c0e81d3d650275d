"""Executors of Spark as processes of this machine: what the entry point of Spark's image does, with pyspark's own jars.

There are no mounts here: a volume of the host is where it is, all others are folders of the pod.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyspark

from eosctl.machine.java import require_java, spark_java_home
from eosctl.sandbox.downloads.jars import cache_dir
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.programs import here, volume_of

_SPARK = Path(pyspark.__file__).parent
_BACKEND = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
_OPTION = "SPARK_JAVA_OPT_"
_WORDS = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}


def is_executor(pod: Mapping[str, Any]) -> bool:
    """Whether it is what Spark's scheduler makes."""
    return any(each.get("args") == ["executor"] for each in pod["spec"]["containers"])


def start_executor(plane: ControlPlane, pod: Mapping[str, Any], address: str, folder: Path) -> subprocess.Popen[bytes]:
    """Starts it; `folder` is the pod's, and gets its output as `log.txt`."""
    (container,) = pod["spec"]["containers"]
    volumes = {each["name"]: volume_of(plane, pod, each, folder) for each in pod["spec"]["volumes"]}
    places = {each["mountPath"]: volumes[each["name"]] for each in container["volumeMounts"]}
    fields = {"status.podIP": address, "metadata.name": pod["metadata"]["name"]}
    given = {each["name"]: here(_value(each, fields), places) for each in container["env"]}
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "SPARK_HOME": str(_SPARK), **given}
    options = sorted((name for name in given if name.startswith(_OPTION)), key=lambda name: int(name[len(_OPTION) :]))
    memory = given["SPARK_EXECUTOR_MEMORY"]
    java_home = spark_java_home(require_java(os.environ), cache_dir(os.environ) / "spark")
    words = [str(java_home / "bin" / "java"), *(given[name] for name in options), f"-Xms{memory}", f"-Xmx{memory}"]
    words += ["-cp", f"{given['SPARK_CONF_DIR']}:{_SPARK}/jars/*", _BACKEND]
    words += [word for name, variable in _WORDS.items() for word in (name, given[variable])]
    with (folder / "log.txt").open("wb") as log:
        return subprocess.Popen(
            words, cwd=folder, env=environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )


def _value(variable: Mapping[str, Any], fields: Mapping[str, str]) -> str:
    if "valueFrom" in variable:
        return fields[variable["valueFrom"]["fieldRef"]["fieldPath"]]
    return str(variable.get("value", ""))
