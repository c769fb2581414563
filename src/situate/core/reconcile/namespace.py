"""Namespaces: what every one has, and deletion: first pods, then other contents, then the namespace."""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from situate.core.model.managed import ManagedAccount, ManagedNamespace, NamespaceStatus
from situate.core.model.refs import Millis
from situate.core.model.stored import Condition, condition_of
from situate.core.reconcile.api_values import format_time
from situate.core.reconcile.effects import (
    BURST,
    CreateObject,
    DeleteObject,
    Effect,
    FinalizeNamespace,
    ObjectRef,
    ReconcileResult,
    UpdateStatus,
)
from situate.core.reconcile.graph import Graph, OwnedObject
from situate.core.reconcile.objects import KINDS, ObjectLister, ref_of, to_json
from situate.core.reconcile.root_certificates import root_certificates

DEFAULT = "default"
"""The ServiceAccount that every namespace has: a pod that names none runs as it."""
KUBERNETES = "kubernetes"
"""The finalizer in the spec that keeps a namespace until its contents are deleted."""

_FINE = (
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    ("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
    ("NamespaceFinalizersRemaining", "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
)


def namespace_contents(one: ManagedNamespace, objects: ObjectLister, now: Millis) -> ReconcileResult:
    """The ServiceAccount `default` and the ConfigMap `kube-root-ca.crt`."""
    return ReconcileResult((*default_account(one, objects, now).effects, *root_certificates(one, objects, now).effects))


def default_account(one: ManagedNamespace, objects: ObjectLister, now: Millis) -> ReconcileResult:
    name = one.metadata.name
    if one.metadata.deletion_timestamp is not None or objects.get(ManagedAccount, name, DEFAULT) is not None:
        return ReconcileResult()
    api_version, kind = KINDS[ManagedAccount]
    body = {"apiVersion": api_version, "kind": kind, "metadata": {"name": DEFAULT, "namespace": name}}
    return ReconcileResult((CreateObject(ObjectRef(api_version, kind, name, DEFAULT), body),))


def namespace(one: ManagedNamespace, graph: Graph, now: Millis) -> ReconcileResult:
    if one.metadata.deletion_timestamp is None or KUBERNETES not in one.spec.finalizers:
        return ReconcileResult()
    ref, version = ref_of(one), one.metadata.resource_version
    contents = graph.contents(one.metadata.name)
    status = NamespaceStatus(phase="Terminating", conditions=_conditions(one, contents, now))
    effects: list[Effect] = []
    if status != one.status:
        effects.append(UpdateStatus(ref, version, to_json(status) | {"phase": status.phase}))
    elif not contents:
        kept = tuple(name for name in one.spec.finalizers if name != KUBERNETES)
        return ReconcileResult((FinalizeNamespace(ref, version, kept),))
    pods = [item for item in contents if (item.group, item.ref.kind) == ("", "Pod")]
    due = [item for item in pods or contents if item.meta.deletion_timestamp is None]
    effects.extend(DeleteObject(item.ref) for item in due[:BURST])
    return ReconcileResult(tuple(effects))


def _conditions(one: ManagedNamespace, contents: Sequence[OwnedObject], now: Millis) -> tuple[Condition, ...]:
    # Contents that are being deleted and still exist.
    left = [item for item in contents if item.meta.deletion_timestamp is not None]
    wrong: dict[str, tuple[str, str]] = {}
    if left:
        kinds = _counts(f"{item.resource}.{item.group}" for item in left)
        parts = ", ".join(f"{name} has {count} resource instances" for name, count in kinds)
        wrong["NamespaceContentRemaining"] = ("SomeResourcesRemain", f"Some resources are remaining: {parts}")
    finalizers = _counts(name for item in left for name in item.meta.finalizers)
    if finalizers:
        parts = ", ".join(f"{name} in {count} resource instances" for name, count in finalizers)
        text = f"Some content in the namespace has finalizers remaining: {parts}"
        wrong["NamespaceFinalizersRemaining"] = ("SomeFinalizersRemain", text)
    found = list(one.status.conditions)
    for kind, fine, text in _FINE:
        reason, message = wrong.get(kind, (fine, text))
        new = Condition(type=kind, status="True" if kind in wrong else "False", reason=reason, message=message)
        old = condition_of(one.status.conditions, kind)
        if old is None:
            found.append(replace(new, last_transition_time=format_time(now)))
            continue
        kept = old.status == new.status
        found[found.index(old)] = replace(
            new, last_transition_time=old.last_transition_time if kept else format_time(now)
        )
    return tuple(found)


def _counts(names: Iterable[str]) -> list[tuple[str, int]]:
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return sorted(counts.items())
