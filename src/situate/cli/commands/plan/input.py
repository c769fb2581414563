"""What a plan is made for: a cluster, from files or from an API server that lets us list it; and a workload.

A workload is named as kubectl does (`web-0`, `deploy/web`), or comes from a file of its own. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
import msgspec

from situate.cli import BadInput
from situate.cli.cluster.connection import cluster_options, with_client
from situate.cli.input.files import read_sources

if TYPE_CHECKING:
    from situate.cli.input.cluster import Seen
    from situate.core.engine.framework import Framework
    from situate.core.model.pod import Pod
    from situate.core.model.volumes import Volume
    from situate.core.plan.sandbox import Sandbox
    from situate.core.plugins.support.prices import PriceList
    from situate.core.state.cluster import Cluster
    from situate.kube.client import Client
    from situate.wire.objects import Source

DEFAULT: Final = "default"
NOBODY: Final = "\x00"
"""No object has this name: nothing is to be kept as it was written."""
KINDS: Final[Mapping[str, tuple[str, str]]] = {
    **dict.fromkeys(("deploy", "deployment", "deployments"), ("Deployment", "/apis/apps/v1")),
    **dict.fromkeys(("rs", "replicaset", "replicasets"), ("ReplicaSet", "/apis/apps/v1")),
    **dict.fromkeys(("sts", "statefulset", "statefulsets"), ("StatefulSet", "/apis/apps/v1")),
    **dict.fromkeys(("ds", "daemonset", "daemonsets"), ("DaemonSet", "/apis/apps/v1")),
    **dict.fromkeys(("job", "jobs"), ("Job", "/apis/batch/v1")),
    **dict.fromkeys(("cj", "cronjob", "cronjobs"), ("CronJob", "/apis/batch/v1")),
    **dict.fromkeys(("rc", "replicationcontroller", "replicationcontrollers"), ("ReplicationController", "/api/v1")),
}
"""What makes pods, by the names that kubectl understands: the kind, and where the API server has it."""
PODS: Final = ("pod", "pods", "po")

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Asked:
    """What the options said."""

    names: tuple[str, ...]
    namespace: str | None
    all_namespaces: bool
    config: str | None
    output: str
    kubeconfig: str | None
    context: str | None


@dataclass(frozen=True, slots=True)
class Reference:
    """A workload by name. Without a kind, a pod."""

    text: str
    kind: str
    namespace: str | None
    name: str


@dataclass(slots=True, repr=False)
class World:
    """All that was read. Without a repr, as asyncio would make one of it all."""

    seen: Seen
    cluster: Cluster
    profiles: Mapping[str, Framework]
    where: str
    space: str
    """The namespace of what does not say its own."""
    local: dict[str, None] = field(default_factory=dict)
    """Pods with local storage, by namespace/name."""
    found: list[dict[str, Any]] = field(default_factory=list)
    """The named workload as it is written, if it is no pod."""

    def sandbox(self) -> Sandbox:
        from situate.core.plan.sandbox import Sandbox

        return Sandbox(self.cluster, self.profiles, self.seen.pods)

    @property
    def prices(self) -> PriceList | None:
        from situate.cli.output.money import price_list

        return price_list(self.profiles)


def world_options(command: F) -> F:
    """The options of every plan. They come in as one argument, `asked`."""

    def gathered(**options: Any) -> Any:
        chosen = {name: options.pop(name) for name in Asked.__slots__}
        asked = Asked(**chosen)
        if asked.names and (asked.kubeconfig or asked.context):
            raise BadInput("-f is for files, --kubeconfig and --context for a cluster: give one or the other")
        if asked.namespace and asked.all_namespaces:
            raise BadInput("-n and -A: give one or the other")
        return command(asked=asked, **options)

    gathered.__doc__ = command.__doc__
    gathered.__name__ = command.__name__
    gathered.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]
    made: Any = gathered
    for option in (
        click.option("-o", "--output", type=click.Choice(["text", "json", "yaml"]), default="text", show_default=True),
        click.option("--config", metavar="FILE", help="Scheduler configuration."),
        click.option("-A", "--all-namespaces", is_flag=True, help="Look for what is named in all namespaces."),
        click.option("-n", "--namespace", metavar="NAME", help="Namespace; default: that of the kubeconfig."),
        click.option(
            "-f", "--filename", "names", multiple=True, metavar="FILE", help="File, folder or - (repeatable)."
        ),
    ):
        made = option(made)
    result: F = cluster_options(made)
    return result


def parse_reference(text: str, asked: Asked) -> Reference:
    """`web-0`, `pod/web-0`, `shop/web-0` and `deploy/web` are all understood."""
    before, slash, name = text.partition("/")
    if not slash:
        before, name = "", text
    kind = ""
    if before.lower() in KINDS:
        kind, before = KINDS[before.lower()][0], ""
    elif before.lower() in PODS:
        before = ""
    if not name or "/" in name:
        raise BadInput(f'"{text}" is no name of a pod or workload: NAME, NAMESPACE/NAME or KIND/NAME')
    if before and asked.namespace and before != asked.namespace:
        raise BadInput(f"{text} and -n {asked.namespace} name two namespaces")
    return Reference(text, kind, before or asked.namespace, name)


# -- a cluster ---------------------------------------------------------------------------------------------------------


def read_world(asked: Asked, named: Reference | None = None, *, local: bool = False) -> World:
    """`local`: find out which pods have local storage, too. Raises InputError; what a cluster refuses ends it."""
    from situate.cli.input.profiles import read_profiles

    profiles = read_profiles(None if asked.config is None else Path(asked.config))
    if not asked.names:
        return _live(asked, named, profiles, local=local)
    from situate.cli.input.cluster import read_files

    sources = list(read_sources(asked.names))
    seen, cluster = read_files(sources, NOBODY)
    if not seen.pods and not seen.nodes and not seen.named:
        raise BadInput(f"{', '.join(asked.names)}: no node and no pod in there")
    world = World(seen, cluster, profiles, ", ".join(asked.names), asked.namespace or DEFAULT)
    if named is not None and named.kind:
        world.found = [one for source in sources for one in _written(source, named)]
    if local:
        world.local = dict.fromkeys(key for source in sources for key in _local_in(source))
    return world


def _live(asked: Asked, named: Reference | None, profiles: Mapping[str, Framework], *, local: bool) -> World:
    async def work(client: Client) -> World:
        return await live_world(client, asked, profiles, named, local=local)

    return with_client(asked.kubeconfig, asked.context, work)


async def live_world(
    client: Client,
    asked: Asked,
    profiles: Mapping[str, Framework],
    named: Reference | None = None,
    *,
    local: bool = False,
) -> World:
    """What a cluster has now. Raises ApiError."""
    from situate.cli.input.cluster import read_live
    from situate.core.config.defaults import default_configuration
    from situate.kube.kinds import ALL_KINDS, needed_kinds

    kinds = list(ALL_KINDS) if asked.config is not None else list(needed_kinds(default_configuration()))
    kinds += [kind for kind in ALL_KINDS if kind.resource == "poddisruptionbudgets" and kind not in kinds]
    seen = await read_live(client, kinds)
    space = asked.namespace or client.access.namespace or DEFAULT
    world = World(seen, seen.cluster(), profiles, client.access.server, space)
    await _add_priorities(client, seen)
    if named is not None and named.kind:
        world.found = await _listed(client, named, None if asked.all_namespaces else named.namespace or space)
    if local:
        world.local = await _local_live(client)
    return world


async def _add_priorities(client: Client, seen: Seen) -> None:
    """The classes that manifests may name. Whoever may not list them still knows those of pods that are there."""
    from situate.core.model.policy import PriorityClass
    from situate.kube.errors import ApiError

    try:
        answer = _pods(await client.request("GET", "/apis/scheduling.k8s.io/v1/priorityclasses"))
    except ApiError as error:
        if not (error.forbidden or error.not_found):
            raise
        return
    seen.priority_classes = [msgspec.json.decode(item, type=PriorityClass) for item in answer.items or ()]


async def _listed(client: Client, named: Reference, space: str | None) -> list[dict[str, Any]]:
    from urllib.parse import quote

    resource, root = next(
        (word, at) for word, (kind, at) in KINDS.items() if kind == named.kind and word == f"{kind.lower()}s"
    )
    where = f"/namespaces/{quote(space, safe='')}" if space else ""
    params = {"fieldSelector": f"metadata.name={named.name}"}
    answer = msgspec.json.decode(await client.request("GET", f"{root}{where}/{resource}", params=params))
    version = root.removeprefix("/apis/").removeprefix("/api/")
    return [{**item, "kind": named.kind, "apiVersion": version} for item in answer.get("items") or ()]


# -- local storage -----------------------------------------------------------------------------------------------------


class _Meta(msgspec.Struct):
    name: str = ""
    namespace: str = DEFAULT


class _Volume(msgspec.Struct, rename="camel"):
    empty_dir: dict[str, Any] | None = None


class _Spec(msgspec.Struct):
    volumes: list[_Volume] | None = None


class _Pod(msgspec.Struct):
    kind: str = "Pod"
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _Pods(msgspec.Struct):
    items: list[msgspec.Raw] | None = None
    metadata: dict[str, Any] = {}


_pod = msgspec.json.Decoder(_Pod).decode
_pods = msgspec.json.Decoder(_Pods).decode
_EMPTY_DIR: Final = b"emptyDir"
_NOT_SO = (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError, RecursionError)


def _local_in(source: Source) -> list[str]:
    """The pods of a file that have local storage."""
    if _EMPTY_DIR not in source.data:
        return []
    return _with_empty_dirs(_items(source, _EMPTY_DIR))


def _with_empty_dirs(items: Iterable[bytes | msgspec.Raw]) -> list[str]:
    found = []
    for item in items:
        if _EMPTY_DIR in bytes(item):
            pod = _pod(item)
            if pod.kind == "Pod" and any(volume.empty_dir is not None for volume in pod.spec.volumes or ()):
                found.append(f"{pod.metadata.namespace or DEFAULT}/{pod.metadata.name}")
    return found


async def _local_live(client: Client) -> dict[str, None]:
    from situate.cli.input.cluster import PAGE

    params = {"limit": str(PAGE), "fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"}
    found: dict[str, None] = {}
    while True:
        page = _pods(await client.request("GET", "/api/v1/pods", params=params))
        found |= dict.fromkeys(_with_empty_dirs(page.items or ()))
        more = page.metadata.get("continue")
        if not more:
            return found
        params = {**params, "continue": str(more)}


def _items(source: Source, needle: bytes) -> list[bytes | msgspec.Raw]:
    """The objects of a file that has been read before, as JSON; those without the needle may be left out."""
    from situate.wire.yaml import load_yaml

    data = source.data.removeprefix(b"\xef\xbb\xbf")
    try:
        listed = _pods(data)
        return [item for item in listed.items if needle in bytes(item)] if listed.items is not None else [data]
    except _NOT_SO:
        documents = [one for one in load_yaml(data, source.name) if isinstance(one, dict)]
    found: list[bytes | msgspec.Raw] = []
    for document in documents:
        items = document.get("items")
        found += [msgspec.json.encode(one) for one in (items if isinstance(items, list) else [document])]
    return found


def _written(source: Source, named: Reference) -> list[dict[str, Any]]:
    if named.name.encode() not in source.data:
        return []
    values = [msgspec.json.decode(item) for item in _items(source, named.name.encode())]
    return [
        one
        for one in values
        if isinstance(one, dict) and one.get("kind") == named.kind and _meta(one).get("name") == named.name
    ]


def _meta(value: Mapping[str, Any]) -> Mapping[str, Any]:
    found = value.get("metadata")
    return found if isinstance(found, dict) else {}


# -- workloads ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Workload:
    """Pods that are made alike."""

    subject: str
    kind: str
    pod: Pod
    copies: int


def named_workload(world: World, named: Reference, asked: Asked) -> Workload:
    """Raises BadInput where there is none, or more than one."""
    space = None if asked.all_namespaces and named.namespace is None else named.namespace or world.space
    if named.kind:
        found = [one for one in world.found if space in (None, _meta(one).get("namespace") or DEFAULT)]
        spaces = [str(_meta(one).get("namespace") or DEFAULT) for one in found]
        _one_of(world, named, f"{named.kind} {named.name}", spaces, space)
        return _workload(found[0], world.where, world)
    pods = [
        pod for pod in world.seen.pods if pod.metadata.name == named.name and space in (None, pod.metadata.namespace)
    ]
    _one_of(world, named, f'pods "{named.name}"', [pod.metadata.namespace for pod in pods], space)
    return Workload(f"{pods[0].metadata.namespace}/{named.name}", "Pod", pods[0], 1)


def to_copy(one: Workload) -> tuple[Pod, list[str]]:
    """The pod that more of it are copies of, and what was changed for that.

    Claims that each pod has for itself are made anew for each; where their volumes come from is not known here.
    """
    from msgspec.structs import replace

    kept = tuple(volume for volume in one.pod.spec.volumes if not _own_claim(one.pod, volume))
    if len(kept) == len(one.pod.spec.volumes):
        return one.pod, []
    note = "claims that each pod has for itself are taken to be provisioned wherever it goes"
    return replace(one.pod, spec=replace(one.pod.spec, volumes=kept)), [note]


def _own_claim(pod: Pod, volume: Volume) -> bool:
    """Of an ephemeral volume, or by the template of a StatefulSet."""
    from situate.core.model.meta import controller_of

    if volume.ephemeral is not None:
        return True
    owner, claim = controller_of(pod.metadata), volume.persistent_volume_claim
    of_set = owner is not None and owner.kind == "StatefulSet"
    return of_set and claim is not None and claim.claim_name == f"{volume.name}-{pod.metadata.name}"


def _one_of(world: World, named: Reference, what: str, spaces: Sequence[str], space: str | None) -> None:
    if not spaces:
        inside = f" in namespace {space}" if space else ""
        raise BadInput(f"{world.where}: {what} not found{inside}")
    if len(spaces) > 1:
        raise BadInput(
            f"{world.where}: {what} is in several namespaces: {', '.join(sorted(spaces))}; say which with -n"
        )


def workloads_of(files: Sequence[str], world: World) -> list[Workload]:
    """All that files say is to run, with how many of each. Raises InputError."""
    from situate.cli.input.manifests import read_manifests
    from situate.cli.input.workloads import TEMPLATES
    from situate.wire.errors import InputError

    found = []
    seen: dict[tuple[str, str, str], str] = {}
    for file, value in read_manifests(files):
        if not isinstance(value, dict):
            raise InputError("a document that is no object", file=file)
        kind = str(value.get("kind") or "")
        group = str(value.get("apiVersion") or "").rpartition("/")[0]
        if (group, kind) not in TEMPLATES:
            continue
        made = _workload(value, file, world)
        key = (kind, made.pod.metadata.namespace, made.pod.metadata.name)
        if key in seen:
            raise InputError(f"is there twice: already in {seen[key]}", file=file, subject=made.subject)
        seen[key] = file
        found.append(made)
    if not found:
        raise BadInput(f"{', '.join(files)}: no pod and no workload in there")
    return found


def _workload(value: Mapping[str, Any], file: str, world: World) -> Workload:
    from situate.cli.input.workloads import read_files
    from situate.wire.objects import Source

    alone = {**value, "metadata": {key: one for key, one in _meta(value).items() if key != "ownerReferences"}}
    alone["metadata"].setdefault("namespace", world.space)
    if value.get("kind") == "ReplicaSet" and isinstance(alone.get("spec"), dict):
        alone["spec"] = {**alone["spec"], "replicas": alone["spec"].get("replicas") or 1}
    read = read_files([Source(file, msgspec.json.encode(alone))])
    one = read.workloads[0]
    return Workload(one.subject, one.kind, _with_priority(one.pod, world, file), _copies(value, one.replicas))


def _copies(value: Mapping[str, Any], replicas: int) -> int:
    """How many pods there are at once."""
    spec: Any = value.get("spec") or {}
    if value.get("kind") == "CronJob":
        spec = ((spec.get("jobTemplate") or {}).get("spec")) or {}
    if value.get("kind") not in ("Job", "CronJob"):
        return replicas
    at_once, in_all = spec.get("parallelism"), spec.get("completions")
    at_once = at_once if isinstance(at_once, int) else 1
    return min(at_once, in_all) if isinstance(in_all, int) else at_once


def _with_priority(pod: Pod, world: World, file: str) -> Pod:
    """As the API server would: by the classes that were read, else by those of pods that are there."""
    from situate.core.model.meta import ObjectMeta
    from situate.core.model.policy import PriorityClass
    from situate.core.model.priority import UnknownPriorityClassError, priority_classes, with_priority
    from situate.wire.errors import InputError

    known = {one.metadata.name: one for one in world.seen.priority_classes}
    wanted = pod.spec.priority_class_name
    if wanted and wanted not in known:
        alike = (one.spec.priority for one in world.seen.pods if one.spec.priority_class_name == wanted)
        value = next((value for value in alike if value is not None), None)
        if value is not None:
            known[wanted] = PriorityClass(metadata=ObjectMeta(name=wanted), value=value)
    try:
        return with_priority(pod, priority_classes(known.values()))
    except UnknownPriorityClassError as error:
        subject = f"Pod {pod.metadata.namespace}/{pod.metadata.name}"
        raise InputError(str(error), file=file, subject=subject, path="spec.priorityClassName") from None


def notes_of(world: World, *, budgets: bool) -> list[str]:
    """What could not be judged, because it was not there to read."""
    seen = world.seen
    notes = [f"cannot list {name}: {why}" for name, why in sorted(seen.refused.items())]
    if not seen.nodes:
        notes.append("no Node was given: there is nowhere to go")
    if budgets and "PodDisruptionBudget" not in seen.kinds and not seen.refused:
        notes.append("no PodDisruptionBudget was given: whom budgets protect cannot be judged")
    if not seen.refused and any(volume.persistent_volume_claim for pod in seen.pods for volume in pod.spec.volumes):
        missing = [kind for kind in ("PersistentVolumeClaim", "PersistentVolume") if kind not in seen.kinds]
        if missing:
            notes.append(f"no {' and no '.join(missing)} was given: pods with claims are taken to fit nowhere")
    homeless = sum(len(pods) for pods in world.cluster.homeless.values())
    if homeless:
        pods, are = ("pod", "is") if homeless == 1 else ("pods", "are")
        notes.append(f"{homeless} bound {pods} {are} on nodes that are not there, and count nowhere")
    return notes
