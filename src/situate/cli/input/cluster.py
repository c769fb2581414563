"""A cluster as objects: from files here, from an API server in live.py. place, why, plan and simulate read it.

Files that an API server wrote are read fast: it has checked them and set their defaults. Any other file, and any file
with something unusual in it, goes through the careful reader, which reports what is wrong.
"""

import gc
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from situate.cli.input.files import MappedFile
from situate.cli.input.json_items import KIND, objects_containing, raw_items
from situate.core.devices.template_claims import Templates, lacks_claims, with_template_claims
from situate.core.model.claim_templates import ResourceClaimTemplate
from situate.core.model.devices import ResourceClaim
from situate.core.model.named import NamedObject
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.model.policy import PriorityClass
from situate.core.model.validate import first_problem
from situate.core.state.cluster import Cluster
from situate.core.versions import DEFAULT, KubernetesRules
from situate.wire.objects import MODELS, Source, read_objects

NO_POD: Final = "\0"
"""No pod has this name: for commands that do not ask about one pod."""
_RECORDS: Final = ("Event", "PlacementDecision")


@dataclass(slots=True, repr=False)
class ClusterObjects:
    """The objects of a cluster, and what else is recorded of the one pod that a command asks about.

    Without a repr: asyncio would format all of it for a task's result, and then cut it short.
    """

    pods: list[Pod] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    named: list[NamedObject] = field(default_factory=list)
    kinds: dict[str, None] = field(default_factory=dict)
    """The kinds that were found, or, in a live cluster, could be listed."""
    refused: dict[str, str] = field(default_factory=dict)
    """Resources that could not be listed, and why."""
    records: list[Mapping[str, Any]] = field(default_factory=list)
    """The pod that the command asks about as it is stored, and its events and decisions."""
    ignored: Mapping[str, int] = field(default_factory=dict)
    """Kinds that scheduling does not read, such as `Deployment (apps/v1)`, and how many of each."""
    priority_classes: list[PriorityClass] = field(default_factory=list)
    claim_templates: list[ResourceClaimTemplate] = field(default_factory=list)
    device_problem: str = ""
    """Why a live cluster's claims for devices cannot be judged; empty if they can."""
    notes: list[str] = field(default_factory=list)
    """What else the reader has to say."""

    @property
    def templates(self) -> Templates:
        return {(one.metadata.namespace, one.metadata.name): one for one in self.claim_templates}

    def make_claims(self) -> None:
        """Give the pending pods the claims that a controller is going to make from their templates."""
        if "DeviceClass" not in self.kinds and not any(pod.spec.resource_claims for pod in self.pods):
            return
        templates = self.templates
        taken = {(one.metadata.namespace, one.metadata.name) for one in self.named if isinstance(one, ResourceClaim)}
        count = 0
        for at, pod in enumerate(self.pods):
            if pod.spec.node_name:
                continue
            self.pods[at] = named = _with_uid(pod)
            if not lacks_claims(named):
                continue
            self.pods[at], made = with_template_claims(named, templates, taken)
            taken.update((one.metadata.namespace, one.metadata.name) for one in made)
            self.named += made
            count += bool(made)
        if count:
            self.kinds["ResourceClaim"] = None
            whose = "1 pending pod has" if count == 1 else f"{count} pending pods have"
            self.notes.append(f"{whose} no claims yet: assumes what the templates ask for")

    def cluster(self, rules: KubernetesRules = DEFAULT) -> Cluster:
        made = Cluster(rules)
        made.load(self.nodes, self.named, self.pods)
        return made


def _with_uid(pod: Pod) -> Pod:
    """Claims tell their pods apart by their uids."""
    meta = pod.metadata
    return pod if meta.uid else replace(pod, metadata=replace(meta, uid=f"{meta.namespace}/{meta.name}"))


class _UnusualError(Exception):
    """Not what an API server writes."""


def read_files(
    sources: Sequence[Source | MappedFile],
    name: str = NO_POD,
    rules: KubernetesRules | None = None,
    *,
    claims: bool = False,
) -> tuple[ClusterObjects, Cluster]:
    """The objects of some files, as a cluster. `name` is the pod that the command asks about. Raises InputError.

    `claims`: make the claims that pending pods are going to get from templates.
    """
    gc.disable()  # thousands of objects are created here and none is freed: collecting would only take time
    try:
        return _read(sources, name, rules or DEFAULT, claims)
    finally:
        gc.enable()
        gc.freeze()


def _read(
    given: Sequence[Source | MappedFile], name: str, rules: KubernetesRules, claims: bool
) -> tuple[ClusterObjects, Cluster]:
    split = [raw_items(source) for source in given]
    if None not in split:
        try:
            found = _fast([item for items in split for item in items or ()], name)
            if claims:
                found.make_claims()
            return found, found.cluster(rules)
        except (_UnusualError, msgspec.DecodeError, UnicodeDecodeError, ValueError, RecursionError):
            pass  # the careful reader says what is wrong
    sources = [source.read() if isinstance(source, MappedFile) else source for source in given]
    objects = read_objects(sources)
    found = ClusterObjects(
        objects.pods,
        objects.nodes,
        list(objects.named()),
        dict.fromkeys(type(one).__name__ for one in objects.all()),
        ignored=objects.ignored,
        priority_classes=objects.priority_classes,
        claim_templates=objects.resource_claim_templates,
    )
    if claims:
        found.make_claims()
    cluster = found.cluster(rules)
    named = [one for source in sources for one in objects_containing(source, name.encode())]
    found.records = [one for one in named if one.get("kind") in ("Pod", *_RECORDS)]
    return found, cluster


def _fast(items: Iterable[msgspec.Raw], name: str) -> ClusterObjects:
    """Raises _UnusualError, or what decoding raises. The pod that the command asks about is validated all the same."""
    decoders = {key: (model.__name__, msgspec.json.Decoder(model).decode) for key, model in MODELS.items()}
    found: dict[str, list[Any]] = {}
    ignored: dict[str, int] = {}
    names: dict[tuple[str, str, str], None] = {}
    written: list[msgspec.Raw] = []
    match = KIND.match
    for item in items:
        head = match(item)
        if head is None:
            raise _UnusualError
        version, kind = head[1].decode(), head[2].decode()
        model, decode = decoders.get((kind, version.rpartition("/")[0]), ("", None))
        if decode is None:
            if kind.endswith("List"):
                raise _UnusualError
            ignored[f"{kind} ({version})"] = ignored.get(f"{kind} ({version})", 0) + 1
            if kind in _RECORDS:
                written.append(item)
            continue
        made = decode(item)
        meta = made.metadata  # type: ignore[attr-defined]
        if not meta.resource_version or not meta.uid:
            raise _UnusualError
        names[model, meta.namespace, meta.name] = None
        found.setdefault(model, []).append(made)
        if meta.name == name:
            written.append(item)
    if len(names) != sum(len(those) for those in found.values()):
        raise _UnusualError  # two objects have the same name
    if any(pod.spec.priority is None and pod.spec.priority_class_name for pod in found.get("Pod", ())):
        raise _UnusualError
    if any(pod.metadata.name == name and first_problem(pod) is not None for pod in found.get("Pod", ())):
        raise _UnusualError
    kinds = dict.fromkeys(found)
    pods: list[Pod] = found.pop("Pod", [])
    nodes: list[Node] = found.pop("Node", [])
    classes: list[PriorityClass] = found.pop("PriorityClass", [])
    templates: list[ResourceClaimTemplate] = found.pop("ResourceClaimTemplate", [])
    named = [one for those in found.values() for one in those]
    needle = name.encode()
    records = [msgspec.json.decode(item) for item in written if needle in bytes(item)]
    return ClusterObjects(
        pods,
        nodes,
        named,
        kinds,
        records=records,
        ignored=ignored,
        priority_classes=classes,
        claim_templates=templates,
    )
