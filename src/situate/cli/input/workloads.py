"""Workloads: pods, and the controllers whose templates describe pods. From manifests, or from a live cluster."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import msgspec

from situate.cli.cluster.connection import Client
from situate.cli.cluster.objects import list_objects
from situate.cli.input.manifests import Manifest, at_path
from situate.core.model.defaults import DEFAULT_NAMESPACE
from situate.core.model.pod import Pod
from situate.wire.errors import InputError
from situate.wire.objects import decode_checked


@dataclass(frozen=True, slots=True)
class _Kind:
    short_name: str
    template: tuple[str, ...]
    """Where the template of its pods is."""
    path: str
    """Where the API server has it."""


WORKLOADS: Final[Mapping[tuple[str, str], _Kind]] = {
    ("", "Pod"): _Kind("po", (), "/api/v1/pods"),
    ("", "ReplicationController"): _Kind("rc", ("spec", "template"), "/api/v1/replicationcontrollers"),
    ("apps", "Deployment"): _Kind("deploy", ("spec", "template"), "/apis/apps/v1/deployments"),
    ("apps", "ReplicaSet"): _Kind("rs", ("spec", "template"), "/apis/apps/v1/replicasets"),
    ("apps", "StatefulSet"): _Kind("sts", ("spec", "template"), "/apis/apps/v1/statefulsets"),
    ("apps", "DaemonSet"): _Kind("ds", ("spec", "template"), "/apis/apps/v1/daemonsets"),
    ("batch", "Job"): _Kind("job", ("spec", "template"), "/apis/batch/v1/jobs"),
    ("batch", "CronJob"): _Kind("cj", ("spec", "jobTemplate", "spec", "template"), "/apis/batch/v1/cronjobs"),
}
"""By group and kind."""
REPLICATED: Final = ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController")
KIND_NAMES: Final[Mapping[str, str]] = {
    name: kind for (_, kind), one in WORKLOADS.items() for name in (one.short_name, kind.lower(), f"{kind.lower()}s")
}
"""The names that kubectl understands."""


@dataclass(frozen=True, slots=True)
class PodWorkload:
    """A controller and one of the pods that it creates; or a pod without a controller."""

    kind: str
    namespace: str
    name: str
    file: str
    pod: Pod
    replicas: int
    at_once: int
    """How many of its pods run at the same time: of a Job, its parallelism."""
    path: str
    """Of the pod's spec within the object: `spec`, `spec.template.spec`."""
    from_server: bool
    """Read from a server, not written by hand."""
    owner: tuple[str, str] | None
    """Kind and name of its controller."""

    @property
    def subject(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


def workload_of(manifest: Manifest) -> PodWorkload:
    """Raises InputError."""
    meta, path = manifest.metadata, WORKLOADS[manifest.group_and_kind].template
    name, space = meta.get("name") or meta.get("generateName"), manifest.namespace or DEFAULT_NAMESPACE
    if not isinstance(name, str):
        raise manifest.error("Required value: name or generateName is required", "metadata")
    subject = f"{manifest.kind} {space}/{name}"
    template = at_path(manifest.body, *path)
    if not isinstance(template, dict):
        raise InputError("Required value", file=manifest.file, subject=subject, path=".".join(path))
    made = {
        "metadata": {**(template.get("metadata") or {}), "name": name, "namespace": space},
        "spec": template.get("spec") or {},
        "status": manifest.body.get("status") or {} if manifest.kind == "Pod" else {},
    }
    pod = decode_checked(Pod, msgspec.json.encode(made), file=manifest.file, within=subject)
    replicas = at_path(manifest.body, "spec", "replicas") if manifest.kind in REPLICATED else 1
    replicas = replicas if isinstance(replicas, int) else 1
    return PodWorkload(
        kind=manifest.kind,
        namespace=space,
        name=name,
        file=manifest.file,
        pod=pod,
        replicas=replicas,
        at_once=_at_once(manifest, replicas),
        path=".".join((*path, "spec")),
        from_server=bool(meta.get("uid")),
        owner=_owner(meta.get("ownerReferences")),
    )


def _at_once(manifest: Manifest, replicas: int) -> int:
    if manifest.kind not in ("Job", "CronJob"):
        return replicas
    spec = at_path(manifest.body, *(("spec", "jobTemplate") if manifest.kind == "CronJob" else ()), "spec")
    parallelism, completions = at_path(spec, "parallelism"), at_path(spec, "completions")
    parallelism = parallelism if isinstance(parallelism, int) else 1
    return min(parallelism, completions) if isinstance(completions, int) else parallelism


def _owner(references: Any) -> tuple[str, str] | None:
    for one in references if isinstance(references, list) else ():
        if isinstance(one, dict) and one.get("controller"):
            return str(one.get("kind")), str(one.get("name"))
    return None


def pod_workload(pod: Pod) -> PodWorkload:
    """An existing pod, without its controller."""
    meta = pod.metadata
    return PodWorkload("Pod", meta.namespace, meta.name, "", pod, 1, 1, "spec", from_server=True, owner=None)


async def list_manifests(
    client: Client, group: str, kind: str, path: str, params: Mapping[str, str] | None = None
) -> list[Manifest]:
    """The items of a list, which do not say their kind themselves. Raises ApiError."""
    what = {"kind": kind, "apiVersion": f"{group}/v1" if group else "v1"}
    return [Manifest(client.access.server, "", {**item, **what}) for item in await list_objects(client, path, params)]


async def list_workloads(client: Client, kind: str, namespace: str | None, name: str) -> list[Manifest]:
    """The workloads of this kind and name; `namespace` None: in all namespaces. Raises ApiError."""
    (group, _), found = next((key, one) for key, one in WORKLOADS.items() if key[1] == kind)
    root, _, plural = found.path.rpartition("/")
    path = f"{root}/namespaces/{quote(namespace, safe='')}/{plural}" if namespace else found.path
    return await list_manifests(client, group, kind, path, {"fieldSelector": f"metadata.name={name}"})
