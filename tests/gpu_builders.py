"""Nodes with GPUs and pods that ask for them."""

from typing import Any

from builders import node, pod
from situate.core.model.annotations import GPU_DEVICES, GPU_MEMORY, GPU_MILLI
from situate.core.model.gpu import GPU_RESOURCE
from situate.core.model.node import Node
from situate.core.model.pod import Pod

__all__ = ["gpu_config", "gpu_node", "share", "whole"]


def gpu_node(name: str = "n1", gpus: int = 2, **fields: Any) -> Node:
    """With plenty of all else, unless it is said."""
    room = {GPU_RESOURCE: str(gpus), **fields.pop("allocatable", {})}
    return node(name, **{"cpu": "64", "memory": "256Gi", "pods": "110", **fields}, allocatable=room)


def share(name: str = "s", milli: int | str = 500, *, devices: str = "", memory: str = "", **fields: Any) -> Pod:
    """A pod with a share, by annotation; `devices`: those that it says it has."""
    notes = {GPU_MILLI: str(milli), GPU_DEVICES: devices, GPU_MEMORY: memory}
    annotations = {key: value for key, value in notes.items() if value} | fields.pop("annotations", {})
    return pod(name, uid=name, annotations=annotations, **fields)


def whole(name: str = "w", gpus: int = 1, *, devices: str = "", memory: str = "", **fields: Any) -> Pod:
    notes = {GPU_DEVICES: devices, GPU_MEMORY: memory}
    annotations = {key: value for key, value in notes.items() if value}
    requests = {GPU_RESOURCE: str(gpus), **fields.pop("requests", {})}
    return pod(name, uid=name, annotations=annotations, requests=requests, **fields)


def gpu_config(enabled: str = "GpuShare, Fragmentation", arguments: str = "[]") -> bytes:
    """A configuration with these plugins as well."""
    names = ", ".join(f"{{name: {name.strip()}}}" for name in enabled.split(","))
    return f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {{multiPoint: {{enabled: [{names}]}}}}
  pluginConfig: {arguments}
""".encode()
