"""Candidate fixes: changes that may make one filter accept one node. The caller tries each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from msgspec.structs import asdict

from situate.core.explain import edits
from situate.core.explain.formatting import quantity, requirement_text, roughly, taint_text, term_text
from situate.core.explain.latency_details import limited, ms
from situate.core.explain.node_details import parsed, required_terms, selector_entries, untolerated
from situate.core.explain.pod_details import hard_constraints_of, limit_of
from situate.core.explain.resource_details import free_of
from situate.core.explain.suggestions import Action, ActionKind, SuggestionDraft
from situate.core.model.annotations import LATENCY_LIMIT_MS
from situate.core.model.labels import EXISTS, IN
from situate.core.model.meta import key_of
from situate.core.model.nodeselector import Term
from situate.core.model.pod import Pod
from situate.core.model.resources import MEMORY
from situate.core.place.profile import Profile
from situate.core.plugins.latency import UNKNOWN
from situate.core.plugins.node_resources_fit import NodeResourcesFit
from situate.core.plugins.support.affinity_hints import for_pending_pod
from situate.core.state.classes import PODS, AffinityTerm, PodClass, TermKind
from situate.core.state.columns import Mask
from situate.core.state.holders import port_holders
from situate.core.state.matching import Matcher
from situate.core.state.ports import conflicts
from situate.core.state.topology_counts import carried_terms, count_pods
from situate.core.state.view import View

DO_NOT_SCHEDULE: Final = "DoNotSchedule"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
MEBI: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class TargetNode:
    """A node that the pod should fit."""

    profile: Profile
    view: View
    row: int

    @property
    def name(self) -> str:
        return self.view.names[self.row]

    def kind(self, draft: SuggestionDraft) -> PodClass:
        return self.view.cluster.class_of(draft.pod)


Fix = Callable[[TargetNode, SuggestionDraft], SuggestionDraft | None]
"""Returns the draft with actions added, unchanged if none is needed; None if there is no such fix."""


def _with_pod(draft: SuggestionDraft, pod: Pod, *actions: Action) -> SuggestionDraft:
    return replace(draft, pod=pod, actions=(*draft.actions, *actions))


def _subject(draft: SuggestionDraft) -> str:
    return f"Pod {key_of(draft.pod.metadata)}"


# -- nodes themselves ------------------------------------------------------------------------------------------------


def uncordon(target: TargetNode, draft: SuggestionDraft) -> SuggestionDraft:
    action = Action(
        ActionKind.UNCORDON, f"uncordon node {target.name}", f"Node {target.name}", "spec.unschedulable", value=False
    )
    return replace(draft, node=edits.uncordoned(draft.node), actions=(*draft.actions, action))


def tolerate(_: TargetNode, draft: SuggestionDraft) -> SuggestionDraft:
    taints = untolerated(draft.pod.spec.tolerations, draft.node.spec.taints)
    actions = [
        Action(
            ActionKind.TOLERATE,
            f"tolerate the taint {taint_text(taint)}",
            _subject(draft),
            "spec.tolerations",
            {key: value for key, value in asdict(edits.toleration_of(taint)).items() if value},
        )
        for taint in taints
    ]
    return _with_pod(draft, edits.tolerating(draft.pod, taints), *actions)


def drop_demands(_: TargetNode, draft: SuggestionDraft) -> SuggestionDraft:
    """Drop what the node does not meet: entries of the nodeSelector, or the whole required affinity."""
    labels, name = draft.node.metadata.labels, draft.node.metadata.name
    unmet = [one for one in selector_entries(draft.pod.spec) if not one.matches(labels)]
    pod = edits.without_selector(draft.pod, [one.key for one in unmet])
    actions = [
        Action(
            ActionKind.DROP_SELECTOR,
            f"drop the node selector {requirement_text(one)}",
            _subject(draft),
            "spec.nodeSelector",
            one.key,
        )
        for one in unmet
    ]
    terms = required_terms(pod.spec)
    read = [parsed(term) for term in terms or ()]
    if terms is not None and not any(term is not None and term.matches(labels, name) for term in read):
        asks = " or ".join(
            ",".join(requirement_text(one) for one in (*term.labels, *term.fields)) if term else "an invalid term"
            for term in read
        )
        pod = edits.without_required_node_affinity(pod)
        actions.append(
            Action(
                ActionKind.DROP_NODE_AFFINITY,
                f"drop the required node affinity ({asks})",
                _subject(draft),
                f"spec.affinity.nodeAffinity.{REQUIRED}",
            )
        )
    return _with_pod(draft, pod, *actions)


def label_node(target: TargetNode, draft: SuggestionDraft) -> SuggestionDraft | None:
    """Add the missing labels: those of the nodeSelector, and those of the affinity term that lacks fewest."""
    have, name = draft.node.metadata.labels, draft.node.metadata.name
    wanted = {one.key: one.values[0] for one in selector_entries(draft.pod.spec) if not one.matches(have)}
    terms = required_terms(draft.pod.spec)
    read = [term for term in map(parsed, terms or ()) if term is not None]
    if terms is not None and not any(term.matches(have, name) for term in read):
        options: list[dict[str, str]] = []
        for term in read:
            unmet = [one for one in term.labels if not one.matches(have)]
            if Term((), term.fields).matches({}, name) and all(one.operator in (IN, EXISTS) for one in unmet):
                options.append({one.key: one.values[0] if one.values else "true" for one in unmet})
        if not options:
            return None
        fewest = min(len(one) for one in options)
        wanted |= next(one for one in options if len(one) == fewest)
    if not wanted:
        return None
    labels = ",".join(f"{key}={value}" for key, value in wanted.items())
    action = Action(
        ActionKind.LABEL_NODE,
        f"label node {target.name} {labels}",
        f"Node {target.name}",
        "metadata.labels",
        dict(wanted),
    )
    return replace(draft, node=edits.labelled(draft.node, wanted), actions=(*draft.actions, action))


# -- what others hold ------------------------------------------------------------------------------------------------


def free_ports(target: TargetNode, draft: SuggestionDraft) -> SuggestionDraft:
    taken = [
        port
        for port in target.kind(draft).host_ports
        if conflicts(port.ip, port_holders(target.view, port).get(target.row, ()))
    ]
    actions = [
        Action(
            ActionKind.FREE_PORT,
            f"give up the host port {port.port}/{port.protocol}",
            _subject(draft),
            "spec.containers[*].ports[*].hostPort",
            port.port,
        )
        for port in taken
    ]
    return _with_pod(draft, edits.without_host_ports(draft.pod, taken), *actions)


def ask_less(target: TargetNode, draft: SuggestionDraft) -> SuggestionDraft | None:
    """Lower each request to what the node has free; if the node has too many pods, evict one."""
    view, row = target.view, target.row
    fit = next((plugin for plugin in target.profile.filters if isinstance(plugin, NodeResourcesFit)), None)
    for column, amount in fit.asked(target.kind(draft), view) if fit is not None else ():
        free = int(free_of(view, column)[row])
        if free >= amount:
            continue
        changed = _evicting_one(target, draft) if column == PODS else _asking(target, draft, column, free)
        if changed is None:
            return None
        draft = changed
    return draft


def _asking(target: TargetNode, draft: SuggestionDraft, column: int, free: int) -> SuggestionDraft | None:
    resource = target.view.cluster.resources.names[column]
    before = edits.asked(draft.pod, resource)
    most = max(0, free)
    if resource == MEMORY and most > MEBI:
        most -= most % MEBI  # a readable number
    pod = edits.asking(draft.pod, resource, most)
    if pod is None:
        return None
    after = edits.asked(pod, resource)
    text = f"ask for {roughly(resource, before - after)} less {resource} ({quantity(resource, after)} instead of "
    text += f"{quantity(resource, before)})"
    action = Action(
        ActionKind.ASK_LESS,
        text,
        _subject(draft),
        f"spec.containers[*].resources.requests[{resource}]",
        quantity(resource, after),
    )
    return _with_pod(draft, pod, action)


def evict_action(key: str, node: str) -> Action:
    return Action(ActionKind.EVICT, f"evict pod {key} from node {node}", f"Pod {key}")


def _evicting_one(target: TargetNode, draft: SuggestionDraft) -> SuggestionDraft | None:
    """Evict the pod with the lowest priority, then the smallest."""
    here = [pod for pod in target.view.pods_on(target.row) if not pod.leaving and pod.key not in draft.evicted]
    if not here:
        return None
    least = min(here, key=lambda pod: (pod.kind.priority, pod.kind.requests.milli_cpu, pod.key))
    action = evict_action(least.key, target.name)
    return replace(draft, evicted=(*draft.evicted, least.key), actions=(*draft.actions, action))


# -- spreading -------------------------------------------------------------------------------------------------------


def soften_spread(target: TargetNode, draft: SuggestionDraft) -> SuggestionDraft:
    """Make the constraints that refuse the node soft."""
    for at in _refusing_constraints(target, draft):
        key = draft.pod.spec.topology_spread_constraints[at].topology_key
        action = Action(
            ActionKind.SOFTEN_SPREAD,
            f"let the spread by {key} be preferred only (ScheduleAnyway)",
            _subject(draft),
            f"spec.topologySpreadConstraints[{at}].whenUnsatisfiable",
            "ScheduleAnyway",
        )
        draft = _with_pod(draft, edits.respread(draft.pod, at), action)
    return draft


def raise_skew(target: TargetNode, draft: SuggestionDraft) -> SuggestionDraft | None:
    """Raise maxSkew of the constraints that refuse the node to just enough."""
    for at, missing in _refusing_constraints(target, draft).items():
        constraint = draft.pod.spec.topology_spread_constraints[at]
        if missing is None:
            return None
        skew = constraint.max_skew + missing
        action = Action(
            ActionKind.RAISE_SKEW,
            f"raise maxSkew of the spread by {constraint.topology_key} from {constraint.max_skew} to {skew}",
            _subject(draft),
            f"spec.topologySpreadConstraints[{at}].maxSkew",
            skew,
        )
        draft = _with_pod(draft, edits.respread(draft.pod, at, max_skew=skew), action)
    return draft


def _refusing_constraints(target: TargetNode, draft: SuggestionDraft) -> dict[int, int | None]:
    """Index of the constraint -> how much skew is missing; None if the node lacks the label."""
    own = draft.pod.spec.topology_spread_constraints
    hard = [at for at, one in enumerate(own) if one.when_unsatisfiable == DO_NOT_SCHEDULE]
    found: dict[int, int | None] = {}
    for at, constraint in zip(hard, hard_constraints_of(target.kind(draft), target.view), strict=False):
        counts, most = limit_of(constraint, target.view)
        domain = int(target.view.label(constraint.counted.topology_key)[0][target.row])
        if domain < 0:
            found[at] = None
        elif counts[domain] > most:
            found[at] = int(counts[domain]) - most
    return found


# -- company ---------------------------------------------------------------------------------------------------------


def drop_terms(target: TargetNode, draft: SuggestionDraft) -> SuggestionDraft | None:
    """Drop the pod's own terms that refuse the node, and evict the one pod there with anti-affinity to it."""
    kind, view = target.kind(draft), target.view
    near = [at for at, term in enumerate(kind.terms_of(TermKind.REQUIRED_AFFINITY)) if _alone(target, term)]
    apart = [at for at, term in enumerate(kind.terms_of(TermKind.REQUIRED_ANTI_AFFINITY)) if not _alone(target, term)]
    actions = [
        Action(
            ActionKind.DROP_POD_TERM,
            f"drop the required pod {word} to {term_text(terms[at].pods)} by {terms[at].topology_key}",
            _subject(draft),
            f"spec.affinity.{side}.{REQUIRED}[{at}]",
        )
        for word, side, terms, places in (
            ("affinity", "podAffinity", kind.terms_of(TermKind.REQUIRED_AFFINITY), near),
            ("anti-affinity", "podAntiAffinity", kind.terms_of(TermKind.REQUIRED_ANTI_AFFINITY), apart),
        )
        for at in places
    ]
    draft = _with_pod(draft, edits.without_pod_terms(draft.pod, near, apart), *actions)
    for carried, counts in carried_terms(view, kind, TermKind.REQUIRED_ANTI_AFFINITY):
        ids, _ = view.label(carried.term.topology_key)
        domain = int(ids[target.row])
        if domain < 0 or counts[domain] <= 0:
            continue
        shunning = _carrier(target, carried.classes, ids == domain) if counts[domain] == 1 else None
        if shunning is None:
            return None
        if shunning not in draft.evicted:
            action = evict_action(shunning, view.cluster.node_of(shunning))
            draft = replace(draft, evicted=(*draft.evicted, shunning), actions=(*draft.actions, action))
    return draft


def _alone(target: TargetNode, term: AffinityTerm) -> bool:
    """Whether the node's domain has no pod that the term matches."""
    domain = int(target.view.label(term.topology_key)[0][target.row])
    sees_no_labels = target.view.cluster.rules.namespace_selector_sees_no_labels
    matcher = Matcher((for_pending_pod(term.pods, sees_no_labels=sees_no_labels),))
    counts = count_pods(target.view, matcher, term.topology_key, counts_leaving=True)
    return domain < 0 or int(counts[domain]) <= 0


def _carrier(target: TargetNode, classes: Mapping[PodClass, int], domain: Mask) -> str | None:
    pods, nodes = target.view.cluster.pods, target.view.cluster.nodes
    for kind in classes:
        for row in kind.placed:
            if domain[row]:
                return next((pods.keys[pod] for pod in nodes.pods[row] if pods.kind(pod) is kind), None)
    return None


# -- distance --------------------------------------------------------------------------------------------------------


def raise_limit(target: TargetNode, draft: SuggestionDraft) -> SuggestionDraft | None:
    """Raise the limit to the node's latency. None if that is unknown."""
    found = limited(target.profile, target.kind(draft), target.view)
    if found is None or (micros := int(found[1][target.row])) == UNKNOWN:
        return None
    request, value = found[0], ms(micros)
    text = f"allow {value} ms to {request.place} instead of {ms(request.limit or 0)}"
    field = f"metadata.annotations[{LATENCY_LIMIT_MS}]"
    action = Action(ActionKind.RAISE_LIMIT, text, _subject(draft), field, value)
    return _with_pod(draft, edits.annotated(draft.pod, LATENCY_LIMIT_MS, value), action)


FIXES: Final[Mapping[str, tuple[Fix, ...]]] = MappingProxyType(
    {
        "NodeUnschedulable": (uncordon,),
        "TaintToleration": (tolerate,),
        "NodeAffinity": (drop_demands, label_node),
        "NodePorts": (free_ports,),
        "NodeResourcesFit": (ask_less,),
        "PodTopologySpread": (soften_spread, raise_skew),
        "InterPodAffinity": (drop_terms,),
        "Latency": (raise_limit,),
    }
)
"""By filter; if several filters refuse, the first fix of each is combined."""
