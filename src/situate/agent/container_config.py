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
from situate.agent.volumes import check_mounts, prepare_volumes, volume_references
from situate.core.model.quantity import milli_value, value

INHERITED: Final = ("PATH", "LANG", "LC_ALL", "TZ")
"""The variables that a container inherits from the agent."""


def references(pod: Mapping[str, Any], spec: Mapping[str, Any]) -> Sequence[ConfigReference]:
    """The objects to read first, each once."""
    return list({one[:2]: one for one in (*environment_references(pod, spec), *volume_references(pod))}.values())


def container_config(
    pod: Mapping[str, Any], spec: Mapping[str, Any], start: ContainerStart, around: EnvironmentSources, home: Path
) -> ContainerConfig:
    """Create the pod's directory and volumes if they do not exist. Raises ContainerConfigError."""
    check_mounts(spec)
    work = home / "work"
    work.mkdir(mode=0o755, exist_ok=True)
    base = {
        **{name: os.environ[name] for name in INHERITED if name in os.environ},
        "HOME": str(work),
        "HOSTNAME": pod["spec"].get("hostname") or pod["metadata"]["name"],
        "SITUATE_POD_DIR": str(work),
        **around.base,
        **prepare_volumes(pod, home / "volumes", around),
    }
    env = variables(pod, spec, replace(around, base=base))
    argv, cwd = command_line(spec, env), spec.get("workingDir") or str(work)
    _check_no_nul(argv, env, cwd)
    return ContainerConfig(
        pod=pod["metadata"]["uid"],
        container=spec["name"],
        attempt=start.attempt,
        backoff_ms=start.backoff_ms,
        argv=argv,
        env=env,
        cwd=cwd,
        chdir_as_user=bool(spec.get("workingDir")),
        security=ProcessSecurity(_security(pod, spec, "runAsUser"), _security(pod, spec, "runAsGroup")),
        limits=_limits(spec),
    )


def _check_no_nul(argv: Sequence[str], env: Mapping[str, str], cwd: str) -> None:
    """No process can be given a NUL."""
    where = {
        "the command": any("\0" in word for word in argv),
        "workingDir": "\0" in cwd,
        **{f"the variable {name!r}": "\0" in name + text for name, text in env.items()},
    }
    for what, found in where.items():
        if found:
            raise ContainerConfigError(f"{what} has a NUL character")


def _security(pod: Mapping[str, Any], spec: Mapping[str, Any], name: str) -> int | None:
    own: int | None = (spec.get("securityContext") or {}).get(name)
    return own if own is not None else (pod["spec"].get("securityContext") or {}).get(name)


def _limits(spec: Mapping[str, Any]) -> ResourceLimits:
    limits = (spec.get("resources") or {}).get("limits") or {}
    cpu, memory = limits.get("cpu"), limits.get("memory")
    return ResourceLimits(
        milli_cpu=None if cpu is None else milli_value(cpu), memory_bytes=None if memory is None else value(memory)
    )
