"""Builds what the runtime needs to start a container: environment, directories, user, limits."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from situate.agent.environment import (
    ConfigReference,
    ContainerConfigError,
    EnvironmentSources,
    command_line,
    environment_references,
    variables,
)
from situate.agent.pod_lifecycle import ContainerStart
from situate.agent.runtime import ContainerConfig, ProcessSecurity, ResourceLimits
from situate.agent.security import NodeSecurity, fs_group, process_security
from situate.agent.volumes import (
    VolumeOwner,
    check_mounts,
    prepare_volumes,
    token_directory,
    variable_of,
    volume_references,
)
from situate.core.model.quantity import milli_value, value

INHERITED: Final = ("PATH", "LANG", "LC_ALL", "TZ")
"""The variables that a container inherits from the agent."""


def references(pod: Mapping[str, Any], spec: Mapping[str, Any]) -> Sequence[ConfigReference]:
    """The objects to read first, each once."""
    return list({one[:2]: one for one in (*environment_references(pod, spec), *volume_references(pod))}.values())


def container_config(
    pod: Mapping[str, Any],
    spec: Mapping[str, Any],
    start: ContainerStart,
    around: EnvironmentSources,
    home: Path,
    volumes_at: Path,
    node: NodeSecurity,
) -> ContainerConfig:
    """Create the pod's directory and volumes if they do not exist. Raises ContainerConfigError."""
    check_mounts(spec)
    security = process_security(pod, spec, node)
    work = _work(home / "work", security)
    volumes = prepare_volumes(pod, volumes_at, around, VolumeOwner(security.user, security.group, fs_group(pod)))
    base = {
        **{name: os.environ[name] for name in INHERITED if name in os.environ},
        "HOME": str(work),
        "HOSTNAME": pod["spec"].get("hostname") or pod["metadata"]["name"],
        "SITUATE_POD_DIR": str(work),
        **around.base,
        **volumes,
        **token_directory(spec, volumes),
    }
    env = variables(pod, spec, replace(around, base=base))
    argv, cwd = command_line(spec, env), spec.get("workingDir") or str(work)
    _check_no_nul(argv, env, cwd)
    if security.writable is not None:
        security = replace(security, writable=(str(work), *_writable(pod, spec, volumes)))
    return ContainerConfig(
        pod=pod["metadata"]["uid"],
        container=spec["name"],
        attempt=start.attempt,
        backoff_ms=start.backoff_ms,
        argv=argv,
        env=env,
        cwd=cwd,
        chdir_as_user=bool(spec.get("workingDir")),
        security=security,
        limits=_limits(spec),
    )


def _work(path: Path, security: ProcessSecurity) -> Path:
    """The directory of the pod's containers. If they have several users, all of them may write there."""
    if not path.exists():
        path.mkdir()
        path.chmod(0o755)  # whatever the umask
        if security.user is not None and security.group is not None:
            os.chown(path, security.user, security.group)
    elif security.user is not None and path.stat().st_uid != security.user:
        path.chmod(0o777)
    return path


def _writable(pod: Mapping[str, Any], spec: Mapping[str, Any], volumes: Mapping[str, str]) -> list[str]:
    """The volumes that a container with a read-only root may write to: those that it mounts so."""
    kinds = {one["name"]: one for one in pod["spec"].get("volumes", ())}
    return [
        volumes[variable_of(mount["name"])]
        for mount in spec.get("volumeMounts", ())
        if not mount.get("readOnly") and _may_write(kinds.get(mount["name"], {}))
    ]


def _may_write(volume: Mapping[str, Any]) -> bool:
    claimed = volume.get("persistentVolumeClaim")
    if claimed is not None:
        return not claimed.get("readOnly")
    return bool({"emptyDir", "hostPath", "ephemeral"} & set(volume))


def _check_no_nul(argv: Sequence[str], env: Mapping[str, str], cwd: str) -> None:
    """An argument or environment variable cannot contain a NUL."""
    where = {
        "the command": any("\0" in word for word in argv),
        "workingDir": "\0" in cwd,
        **{f"the variable {name!r}": "\0" in name + text for name, text in env.items()},
    }
    for what, found in where.items():
        if found:
            raise ContainerConfigError(f"{what} contains a NUL character")


def _limits(spec: Mapping[str, Any]) -> ResourceLimits:
    limits = (spec.get("resources") or {}).get("limits") or {}
    cpu, memory = limits.get("cpu"), limits.get("memory")
    return ResourceLimits(
        milli_cpu=None if cpu is None else milli_value(cpu), memory_bytes=None if memory is None else value(memory)
    )
