"""What a plan is made for: a cluster, from files or live, and a workload. Changes nothing.

A workload is named as kubectl does (`web-0`, `deploy/web`), or comes from a manifest.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

import click
import msgspec
from msgspec import structs

from situate.cli import BadInput
from situate.cli.cluster.connection import Client, with_client
from situate.cli.cluster.objects import list_objects
from situate.cli.input.cluster import ClusterObjects, read_files
from situate.cli.input.devices import GROUP as DEVICES
from situate.cli.input.files import read_sources
from situate.cli.input.json_items import objects_containing
from situate.cli.input.live import read_live
from situate.cli.input.manifests import Manifest, at_path, read_manifests, unique
from situate.cli.input.notes import device_needs, ignored_field_notes, notes_on, template_notes
from situate.cli.input.profiles import read_profiles
from situate.cli.input.published import cluster_profiles
from situate.cli.input.workloads import KIND_NAMES, WORKLOADS, PodWorkload, list_workloads, pod_workload, workload_of
from situate.cli.options import (
    FILES_OR_CLUSTER,
    cluster_options,
    combined,
    config_option,
    files_option,
    kubernetes_version_option,
    namespace_option,
    output_option,
    require_one_scope,
    require_one_source,
)
from situate.cli.output.money import price_list
from situate.core.config.defaults import default_configuration
from situate.core.engine.framework import Framework
from situate.core.model.meta import ObjectMeta, controller_of, key_of
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.model.policy import PriorityClass
from situate.core.model.priority import UnknownPriorityClassError, priority_classes, with_priority
from situate.core.model.volumes import Volume
from situate.core.plan.sandbox import Sandbox
from situate.core.plugins.support.prices import UNKNOWN, PriceList, format_price
from situate.core.state.cluster import FINISHED_PHASES, Cluster
from situate.core.versions import KubernetesRules
from situate.kube.kinds import ALL_KINDS
from situate.kube.needed_kinds import needed_kinds
from situate.wire.errors import InputError
from situate.wire.objects import objects_of

DEFAULT: Final = "default"
EMPTY_DIR: Final = b"emptyDir"
NOT_FINISHED: Final = "status.phase!=Succeeded,status.phase!=Failed"

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class PlanOptions:
    names: tuple[str, ...]
    namespace: str | None
    all_namespaces: bool
    config: str | None
    rules: KubernetesRules | None
    output: str
    kubeconfig: str | None
    context: str | None


@dataclass(frozen=True, slots=True)
class WorkloadName:
    """A workload as the command line names it. Without a kind, a pod."""

    text: str
    kind: str
    namespace: str | None
    name: str


@dataclass(slots=True, repr=False)
class PlanInput:
    """All that was read. Without a repr: asyncio would format all of it for a task's result."""

    objects: ClusterObjects
    cluster: Cluster
    profiles: Mapping[str, Framework]
    where: str
    space: str
    """The namespace of a workload without one."""
    local: dict[str, None] = field(default_factory=dict)
    """Pods with local storage, by namespace/name."""
    manifests: list[Manifest] = field(default_factory=list)
    """The named workload, if it is not a pod."""

    def sandbox(self) -> Sandbox:
        return Sandbox(self.cluster, self.profiles, self.objects.pods, self.objects.templates)

    @property
    def prices(self) -> PriceList | None:
        return price_list(self.profiles)

    def node(self, name: str) -> Node:
        """Raises BadInput."""
        for node in self.objects.nodes:
            if node.metadata.name == name:
                return node
        raise BadInput(f'{self.where}: nodes "{name}" not found')

    def hourly_price(self, names: Sequence[str]) -> dict[str, str] | None:
        """What these nodes cost an hour; None if the price of one is unknown."""
        if self.prices is None or not names:
            return None
        found = [self.prices.of(self.node(name)) for name in names]
        return None if UNKNOWN in found else {"amount": format_price(sum(found)), "currency": self.prices.currency}

    def pending_pods(self) -> list[Pod]:
        """Pods that wait for a node, and could be placed."""
        return [
            pod
            for pod in self.objects.pods
            if not pod.spec.node_name
            and pod.status.phase not in FINISHED_PHASES
            and not pod.spec.scheduling_gates
            and pod.metadata.deletion_timestamp is None
        ]


def plan_options(command: F) -> F:
    """The options of every plan. The command gets them as one argument, `asked`."""

    def gathered(**options: Any) -> Any:
        asked = PlanOptions(**{name: options.pop(name) for name in PlanOptions.__slots__})
        require_one_source(asked.names, asked.kubeconfig, asked.context)
        require_one_scope(asked.namespace, asked.all_namespaces)
        return command(asked=asked, **options)

    gathered.__doc__ = command.__doc__
    gathered.__name__ = command.__name__
    gathered.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]
    made: Any = combined(
        cluster_options,
        files_option,
        namespace_option,
        click.option("-A", "--all-namespaces", is_flag=True, help="Look for the workload in all namespaces."),
        config_option,
        kubernetes_version_option(FILES_OR_CLUSTER),
        output_option(),
    )(gathered)
    result: F = made
    return result


def workload_file_option(command: F) -> F:
    text = "A manifest with the pod or its template (repeatable)."
    return click.option("-w", "--workload", "files", multiple=True, metavar="FILE", help=text)(command)


def parse_workload(text: str, asked: PlanOptions) -> WorkloadName:
    """Parse `web-0`, `pod/web-0`, `shop/web-0` or `deploy/web`."""
    before, _, name = text.rpartition("/")
    kind = KIND_NAMES.get(before.lower(), "")
    if kind:
        before, kind = "", kind if kind != "Pod" else ""
    if not name or "/" in before:
        raise BadInput(f'"{text}" does not name a pod or workload: NAME, NAMESPACE/NAME or KIND/NAME')
    if before and asked.namespace and before != asked.namespace:
        raise BadInput(f"{text} and -n {asked.namespace} name different namespaces")
    return WorkloadName(text, kind, before or asked.namespace, name)


# ── the cluster ─────────────────────────────────────────────────────────────────────────────────────────────────────


def read_input(asked: PlanOptions, named: WorkloadName | None = None, *, local: bool = False) -> PlanInput:
    """`local`: find out which pods have local storage, too. Raises InputError."""
    if not asked.names:

        async def work(client: Client) -> PlanInput:
            return await read_live_input(client, asked, named, local=local)

        return with_client(asked.kubeconfig, asked.context, work)
    profiles = read_profiles(asked.config, asked.rules)
    sources = list(read_sources(asked.names))
    objects, cluster = read_files(sources, rules=asked.rules, claims=True)
    where = ", ".join(asked.names)
    if not objects.pods and not objects.nodes and not objects.named:
        raise BadInput(f"{where}: no Node and no Pod found")
    read = PlanInput(objects, cluster, profiles, where, asked.namespace or DEFAULT)
    if named is not None and named.kind:
        found = [
            Manifest(source.name, "", one)
            for source in sources
            for one in objects_containing(source, named.name.encode())
        ]
        read.manifests = [one for one in found if (one.kind, one.name) == (named.kind, named.name)]
    if local:
        read.local = _with_empty_dirs(one for source in sources for one in objects_containing(source, EMPTY_DIR))
    return read


async def read_live_input(
    client: Client,
    asked: PlanOptions,
    named: WorkloadName | None = None,
    *,
    local: bool = False,
) -> PlanInput:
    """A live cluster as it is now. Raises ApiError."""
    profiles = await cluster_profiles(client, asked.config, asked.rules)
    kinds = list(ALL_KINDS) if profiles.whole else list(needed_kinds(default_configuration()))
    kinds += [kind for kind in ALL_KINDS if kind.resource == "poddisruptionbudgets" and kind not in kinds]
    objects = await read_live(client, kinds, priority_classes=True)
    space = asked.namespace or client.access.namespace or DEFAULT
    objects.notes += profiles.notes_on(objects.pods)
    objects.make_claims()
    read = PlanInput(objects, objects.cluster(profiles.rules), profiles.frameworks, client.access.server, space)
    if named is not None and named.kind:
        within = None if asked.all_namespaces else named.namespace or space
        read.manifests = await list_workloads(client, named.kind, within, named.name)
    if local:
        params = {"fieldSelector": NOT_FINISHED}
        pods = await list_objects(client, "/api/v1/pods", params, containing=EMPTY_DIR)
        read.local = _with_empty_dirs({**pod, "kind": "Pod"} for pod in pods)
    return read


def _with_empty_dirs(objects: Iterable[Mapping[str, Any]]) -> dict[str, None]:
    """The pods among these objects with local storage."""
    found: dict[str, None] = {}
    for one in objects:
        volumes = at_path(one, "spec", "volumes") if one.get("kind") == "Pod" else None
        if isinstance(volumes, list) and any(at_path(volume, "emptyDir") is not None for volume in volumes):
            space, name = at_path(one, "metadata", "namespace"), at_path(one, "metadata", "name")
            found[f"{space or DEFAULT}/{name}"] = None
    return found


# ── workloads ───────────────────────────────────────────────────────────────────────────────────────────────────────


def one_workload(
    read: PlanInput, asked: PlanOptions, named: WorkloadName | None, files: Sequence[str]
) -> tuple[PodWorkload, str]:
    """The named workload, or the only one of the files; and its name for people. Raises BadInput, InputError."""
    if named is not None:
        return named_workload(read, named, asked)
    found = workloads_in(files, read)
    if len(found) > 1:
        subjects = ", ".join(each.subject for each in found[:5])
        raise BadInput(f"{', '.join(files)}: has {len(found)} workloads ({subjects}): give one")
    return found[0], found[0].subject


def named_workload(read: PlanInput, named: WorkloadName, asked: PlanOptions) -> tuple[PodWorkload, str]:
    """Raises BadInput if there is none, or more than one."""
    space = None if asked.all_namespaces and named.namespace is None else named.namespace or read.space
    if named.kind:
        found = [one for one in read.manifests if space in (None, one.namespace or DEFAULT)]
        _require_one(read, f"{named.kind} {named.name}", [one.namespace or DEFAULT for one in found], space)
        made = _workload(found[0], read)
        return made, made.subject
    pods = [
        pod for pod in read.objects.pods if pod.metadata.name == named.name and space in (None, pod.metadata.namespace)
    ]
    _require_one(read, f'pods "{named.name}"', [pod.metadata.namespace for pod in pods], space)
    return pod_workload(pods[0]), f"{pods[0].metadata.namespace}/{named.name}"


def _require_one(read: PlanInput, what: str, spaces: Sequence[str], space: str | None) -> None:
    if not spaces:
        inside = f" in namespace {space}" if space else ""
        raise BadInput(f"{read.where}: {what} not found{inside}")
    if len(spaces) > 1:
        several = ", ".join(sorted(spaces))
        raise BadInput(f"{read.where}: {what} is in several namespaces: {several}; choose one with -n")


def workloads_in(files: Sequence[str], read: PlanInput) -> list[PodWorkload]:
    """All workloads of some files, whose claims and templates of claims become known. Raises BadInput, InputError."""
    return workloads_of(read_manifests(files), read, ", ".join(files))


def workloads_of(given: Iterable[Manifest], read: PlanInput, where: str) -> list[PodWorkload]:
    """The same for manifests that were read; `where` is their name for people."""
    manifests = list(unique(given))
    _learn_devices([one for one in manifests if one.group_and_kind[0] == DEVICES], read)
    found = [_workload(one, read) for one in manifests if one.group_and_kind in WORKLOADS]
    if not found:
        raise BadInput(f"{where}: no Pod and no workload found")
    return found


def _learn_devices(manifests: Sequence[Manifest], read: PlanInput) -> None:
    """Classes, slices, claims and templates that come with a workload; what the cluster has stays as it is."""
    for one in manifests:
        found = objects_of([msgspec.json.encode(one.body)], one.file)
        for item in found.named():
            if read.cluster.find_object(item) is None:
                read.cluster.put_object(item)
                read.objects.named.append(item)
                read.objects.kinds[type(item).__name__] = None
        read.objects.claim_templates += found.resource_claim_templates


def _workload(manifest: Manifest, read: PlanInput) -> PodWorkload:
    body = {**manifest.body, "metadata": {"namespace": read.space, **manifest.metadata}}
    made = workload_of(replace(manifest, body=body))
    if made.kind == "ReplicaSet":
        made = replace(made, at_once=made.replicas or 1)  # a rollout may have scaled it down
    return replace(made, pod=_with_priority(made.pod, read, made.file))


def _with_priority(pod: Pod, read: PlanInput, file: str) -> Pod:
    """As the API server would: by the classes that were read, else by those of existing pods."""
    known = {one.metadata.name: one for one in read.objects.priority_classes}
    wanted = pod.spec.priority_class_name
    if wanted and wanted not in known:
        alike = (one.spec.priority for one in read.objects.pods if one.spec.priority_class_name == wanted)
        value = next((value for value in alike if value is not None), None)
        if value is not None:
            known[wanted] = PriorityClass(metadata=ObjectMeta(name=wanted), value=value)
    try:
        return with_priority(pod, priority_classes(known.values()))
    except UnknownPriorityClassError as error:
        subject = f"Pod {key_of(pod.metadata)}"
        raise InputError(str(error), file=file, subject=subject, path="spec.priorityClassName") from None


def copied_pod(pod: Pod) -> tuple[Pod, list[str]]:
    """The pod that further pods of a workload are copies of, with notes on what was changed for that.

    Each copy gets its own claims, whose volumes are unknown here.
    """
    kept = tuple(volume for volume in pod.spec.volumes if not _is_own_claim(pod, volume))
    if len(kept) == len(pod.spec.volumes):
        return pod, []
    note = "assumes that claims of a pod's own are provisioned wherever it goes"
    return structs.replace(pod, spec=structs.replace(pod.spec, volumes=kept)), [note]


def _is_own_claim(pod: Pod, volume: Volume) -> bool:
    """Whether each pod has its own: of an ephemeral volume, or of a StatefulSet's template."""
    if volume.ephemeral is not None:
        return True
    owner, claim = controller_of(pod.metadata), volume.persistent_volume_claim
    of_set = owner is not None and owner.kind == "StatefulSet"
    return of_set and claim is not None and claim.claim_name == f"{volume.name}-{pod.metadata.name}"


def plan_notes(read: PlanInput, *, budgets: bool, pods: Sequence[Pod] = ()) -> list[str]:
    """`pods` are some that come: one of each kind is enough."""
    needed = [("Node", "pods have nowhere to go")]
    if budgets:
        needed.append(("PodDisruptionBudget", "which pods budgets protect is unknown"))
    if any(volume.persistent_volume_claim for pod in read.objects.pods for volume in pod.spec.volumes):
        claims = "pods with claims count as fitting nowhere"
        needed += [("PersistentVolumeClaim", claims), ("PersistentVolume", claims)]
    needed += device_needs((*read.objects.pods, *pods))
    notes = notes_on(read.objects, needed) + ignored_field_notes(read.objects.named)
    return notes + template_notes((*read.objects.pods, *pods), read.objects.templates)
