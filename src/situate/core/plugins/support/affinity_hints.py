"""Queueing hints of InterPodAffinity: the events that may make it accept a node that it refused.

The plugin refuses a pod by its own terms or by the anti-affinity of bound pods. The event does not tell which, so each
hint checks both. Terms are read by the rules under which they match most: a hint may wake a pod in vain, but must not
miss it.
"""

from __future__ import annotations

from msgspec.structs import replace

from situate.core.contract import Wake, WakeEvent
from situate.core.model.base import EMPTY, Labels
from situate.core.model.labels import EVERYTHING
from situate.core.model.policy import Namespace
from situate.core.state.classes import PodClass, TermKind
from situate.core.state.matching import NamespaceLabels, PodTerm


def affinity_hint(pod: PodClass, event: WakeEvent) -> bool:
    """Whether the event could help a refused pod."""
    if event.own:
        return True  # its labels changed, so terms of bound pods may no longer match it
    match event.kind:
        case Wake.NODE_ADDED if event.node is not None:
            return _node_came(pod, event.node.metadata.labels)
        case Wake.NODE_LABEL if event.node is not None and event.node_before is not None:
            return _domains_moved(pod, event.node_before.metadata.labels, event.node.metadata.labels)
        case Wake.NAMESPACE_LABEL if isinstance(event.item, Namespace):
            return _namespace_moved(pod, event.item.metadata.name, event)
        case Wake.POD_ADDED if event.pod is not None:
            return _is_wanted(pod, event.pod, _namespaces(event))
        case Wake.POD_DELETED if event.pod is not None:
            return _left(pod, event.pod, _namespaces(event))
        case Wake.POD_LABEL if event.pod is not None and event.pod_before is not None:
            return _relabelled(pod, event.pod_before, event.pod, _namespaces(event))
        case _:
            return True


def for_pending_pod(pods: PodTerm, *, sees_no_labels: bool) -> PodTerm:
    """The term as Kubernetes evaluates it for a pending pod.

    Kubernetes lists the existing namespaces that the selector matches. By the rules of older versions, it then
    evaluates the selector once more, on no labels: one that matches no labels (NotIn, DoesNotExist) therefore matches
    pods in every namespace. For a bound pod, it evaluates the same term on the namespace's labels only.
    """
    chooser = pods.namespace_selector
    if chooser is None or not chooser.matches(EMPTY):
        return pods
    if sees_no_labels or not chooser.requirements:
        return PodTerm((), EVERYTHING, pods.selector)
    return replace(pods, only_existing=True)


def _namespaces(event: WakeEvent) -> NamespaceLabels:
    return EMPTY if event.objects is None else event.objects.namespace_labels


# -- pods ------------------------------------------------------------------------------------------------------------


def _is_wanted(pod: PodClass, other: PodClass, namespaces: NamespaceLabels) -> bool:
    """Whether the other pod matches every affinity term of this pod."""
    near = pod.terms_of(TermKind.REQUIRED_AFFINITY)
    return bool(near) and all(
        _speaks(for_pending_pod(term.pods, sees_no_labels=True), other, namespaces) for term in near
    )


def _unwanted(pod: PodClass, other: PodClass, namespaces: NamespaceLabels) -> list[bool]:
    """For each anti-affinity term of the pod, whether it matches the other pod."""
    apart = pod.terms_of(TermKind.REQUIRED_ANTI_AFFINITY)
    return [_speaks(for_pending_pod(term.pods, sees_no_labels=True), other, namespaces) for term in apart]


def _speaks(term: PodTerm, other: PodClass, namespaces: NamespaceLabels) -> bool:
    return term.matches(other.namespace, other.labels, namespaces)


def _left(pod: PodClass, gone: PodClass, namespaces: NamespaceLabels) -> bool:
    if any(_unwanted(pod, gone, namespaces)):
        return True
    repelling = gone.terms_of(TermKind.REQUIRED_ANTI_AFFINITY)
    if any(_speaks(term.pods, pod, namespaces) for term in repelling):
        return True
    return _may_be_first(pod, namespaces) and _is_wanted(pod, gone, namespaces)


def _relabelled(pod: PodClass, before: PodClass, after: PodClass, namespaces: NamespaceLabels) -> bool:
    was_wanted, is_wanted = _is_wanted(pod, before, namespaces), _is_wanted(pod, after, namespaces)
    if was_wanted != is_wanted and (is_wanted or _may_be_first(pod, namespaces)):
        return True
    was, now = _unwanted(pod, before, namespaces), _unwanted(pod, after, namespaces)
    return any(spoke and not speaks for spoke, speaks in zip(was, now, strict=True))


def _may_be_first(pod: PodClass, namespaces: NamespaceLabels) -> bool:
    """Whether the pod has affinity to itself: once the last such pod is gone, it may go anywhere."""
    return _is_wanted(pod, pod, namespaces)


# -- nodes and namespaces --------------------------------------------------------------------------------------------


def _node_came(pod: PodClass, labels: Labels) -> bool:
    """A node without the topology labels can take only a pod without affinity terms."""
    near, apart = pod.terms_of(TermKind.REQUIRED_AFFINITY), pod.terms_of(TermKind.REQUIRED_ANTI_AFFINITY)
    return not near or bool(apart) or any(term.topology_key in labels for term in near)


def _domains_moved(pod: PodClass, before: Labels, after: Labels) -> bool:
    """A node that leaves a domain may leave pods with anti-affinity; joining one matters only for affinity."""
    if any(after.get(key) != value for key, value in before.items()):
        return True
    keys = [term.topology_key for term in pod.terms_of(TermKind.REQUIRED_AFFINITY)]
    return any(key in after and key not in before for key in keys)


def _namespace_moved(pod: PodClass, name: str, event: WakeEvent) -> bool:
    """A namespace selector, of the pod or of a bound pod, may match other namespaces now."""
    if name == pod.namespace:
        return True
    before = event.item_before.metadata.labels if isinstance(event.item_before, Namespace) else EMPTY
    after = _namespaces(event).get(name, EMPTY)
    choosers = [term.pods.namespace_selector for term in pod.terms]
    return any(chooser is not None and chooser.matches(before) != chooser.matches(after) for chooser in choosers)
