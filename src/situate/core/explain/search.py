"""Searches for the smallest changes that make a pod fit. Every suggestion was tried."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from situate.core.devices.claims import ClaimProblemError, pod_claims
from situate.core.explain.device_fixes import class_drafts, device_drafts
from situate.core.explain.device_survey import DeviceSurvey, survey
from situate.core.explain.fixes import FIXES, TargetNode, evict_action
from situate.core.explain.latency_details import limited
from situate.core.explain.node_details import required_terms, selector_entries, untolerated
from situate.core.explain.node_shapes import add_action, local_slices, shapes, slices_like
from situate.core.explain.pod_details import hard_constraints_of, limit_of
from situate.core.explain.resource_details import free_of
from situate.core.explain.suggestions import Action, ActionKind, Suggestion, SuggestionDraft
from situate.core.explain.verdicts import Verdicts
from situate.core.explain.whatif import WhatIf
from situate.core.model.nodeselector import Term, parse_terms
from situate.core.model.pod import Pod
from situate.core.place.filtering import fits_at
from situate.core.place.profile import Profile
from situate.core.plugins.latency import UNKNOWN
from situate.core.plugins.node_resources_fit import NodeResourcesFit
from situate.core.plugins.support.claim_changes import ClaimChange
from situate.core.plugins.support.node_selectors import node_selector_mask, term_mask
from situate.core.state.classes import PodClass
from situate.core.state.columns import IdColumn
from situate.core.state.pods import BoundPod
from situate.core.state.view import View

NODES_TRIED: Final = 6
"""How many nodes refused by the same filters are tried, each for a different shortage."""
NODES_TRIED_TOGETHER: Final = 8
"""How many nodes are tried if several filters refuse."""
VICTIM_NODES: Final = 64
"""On how many nodes to look for a single pod to evict."""
VICTIM_TRIALS: Final = 400
"""How many pods to try for that."""
MAX_ALIKE: Final = 3
"""How many suggestions with the same kinds of actions to return."""
MAX_SUGGESTIONS: Final = 12
DEVICES: Final = "DynamicResources"


@dataclass(frozen=True)
class SearchContext:
    """A pod that does not fit, and the cluster."""

    profile: Profile
    view: View
    pod: Pod
    kind: PodClass
    verdicts: Verdicts
    required: tuple[Action, ...] = ()
    """Actions that are needed in any case."""
    claims: tuple[ClaimChange, ...] = ()
    """The claims that these make. The cluster has them already."""

    @cached_property
    def devices(self) -> DeviceSurvey | None:
        """What nodes that devices keep away have for the pod's claims."""
        refused = self.verdicts.refused_by.get(DEVICES)
        return None if refused is None else survey(self.profile, self.kind, self.view, np.flatnonzero(refused))

    def draft(self, row: int) -> SuggestionDraft:
        node = self.view.node(row)
        if node is None:
            raise LookupError(f"there is no node at row {row}")
        return SuggestionDraft(self.pod, node, self.required, claims=self.claims)


def search_suggestions(context: SearchContext) -> tuple[Suggestion, ...]:
    """A few suggestions of each kind, those with the fewest actions first."""
    whatif = WhatIf(context.view.cluster, context.profile)
    found: dict[str, Suggestion] = {}
    for guess in (*_by_fixing(context, whatif), *_by_evicting(context, whatif), *_by_a_node(context, whatif)):
        found.setdefault(guess.text, guess)
    kept: list[Suggestion] = []
    for suggestion in sorted(found.values(), key=lambda one: len(one.actions)):
        kinds = [action.kind for action in suggestion.actions]
        alike = sum([action.kind for action in one.actions] == kinds for one in kept)
        if alike < MAX_ALIKE and not any(_more_than(suggestion, one) for one in kept):
            kept.append(suggestion)
    return tuple(kept[:MAX_SUGGESTIONS])


def _more_than(suggestion: Suggestion, other: Suggestion) -> bool:
    """Whether a suggestion has all actions of another, and more."""
    asks, less = _steps(suggestion), _steps(other)
    return len(asks) > len(less) and all(action in asks for action in less)


def _steps(suggestion: Suggestion) -> list[tuple[ActionKind, str]]:
    """Ignores by how much a request is lowered."""
    return [
        (action.kind, action.field if action.kind is ActionKind.ASK_LESS else action.text)
        for action in suggestion.actions
    ]


# -- by satisfying the filters ---------------------------------------------------------------------------------------


def _by_fixing(context: SearchContext, whatif: WhatIf) -> Iterator[Suggestion]:
    """Try nodes that one filter refuses; only if that does not help, nodes that several refuse."""
    blockers = context.verdicts.blockers
    if not len(blockers):
        return
    present = context.view.present
    found = 0
    for count in range(1, int(blockers.max(initial=0)) + 1):
        rows = np.flatnonzero(present & (blockers == count))
        if not len(rows):
            continue
        for suggestion in _tried(context, whatif, _drafts(context, rows, several=count > 1)):
            found += 1
            yield suggestion
        if found:
            return


def _tried(context: SearchContext, whatif: WhatIf, drafts: Iterable[SuggestionDraft]) -> Iterator[Suggestion]:
    """The drafts that help; each sequence of actions once."""
    seen: dict[tuple[str, ...], None] = {}
    view = context.view
    for draft in drafts:
        texts = tuple(action.text for action in draft.actions)
        if texts in seen or not texts:
            continue
        seen[texts] = None
        name = draft.node.metadata.name
        changed = view.node(view.find(name)) != draft.node
        nodes = {name: draft.node} if changed else {}
        suggestion = Suggestion(draft.actions, draft.pod, nodes, draft.evicted, draft.claims)
        checked = whatif.checked(suggestion)
        if checked is not None:
            yield checked


def _drafts(context: SearchContext, rows: IdColumn, *, several: bool) -> Iterator[SuggestionDraft]:
    for row in _representatives(context, rows, NODES_TRIED_TOGETHER if several else NODES_TRIED):
        target = TargetNode(context.profile, context.view, row)
        plugins = [name for name, mask in context.verdicts.refused_by.items() if mask[row]]
        if any(name not in FIXES and name != DEVICES for name in plugins):
            continue
        if plugins == [DEVICES]:
            yield from _device_drafts(context, row, context.draft(row))
            continue
        if len(plugins) == 1:
            for fix in FIXES[plugins[0]]:
                fixed = fix(target, context.draft(row))
                if fixed is not None:
                    yield fixed
            continue
        draft: SuggestionDraft | None = context.draft(row)
        for name in plugins:
            if draft is not None and name == DEVICES:
                draft = next(_device_drafts(context, row, draft), None)
            elif draft is not None:
                draft = FIXES[name][0](target, draft)
        if draft is not None:
            yield draft


def _device_drafts(context: SearchContext, row: int, draft: SuggestionDraft) -> Iterator[SuggestionDraft]:
    if context.devices is not None:
        yield from device_drafts(context.devices, row, draft)
        return
    devices = context.view.cluster.objects.devices
    try:
        claims = pod_claims(draft.pod, devices.claims)
    except ClaimProblemError:
        return
    yield from class_drafts(claims, devices.classes, draft)


def _representatives(context: SearchContext, rows: IdColumn, most: int) -> list[int]:
    """One row for each distinct shortage: the one that is least short."""
    lack, cost = _lacks(context, rows)
    order = np.argsort(cost, kind="stable")
    first: dict[bytes, int] = {}
    for at in order.tolist():
        first.setdefault(lack[at].tobytes(), int(rows[at]))
        if len(first) >= most:
            break
    return list(first.values())


def _lacks(context: SearchContext, rows: IdColumn) -> tuple[np.ndarray, np.ndarray]:
    """A key of what each row lacks, and a cost to compare."""
    view, pod, kind = context.view, context.pod, context.kind
    columns = [np.stack([mask[rows] for mask in context.verdicts.refused_by.values()]).astype(np.int64)]
    cost = np.zeros(len(rows), np.float64)
    taints = np.array(view.by_taint_set(lambda those: len(untolerated(pod.spec.tolerations, those))), np.int64)
    columns.append((view.taint_set[rows] * (taints[view.taint_set[rows]] > 0))[None])
    cost += taints[view.taint_set[rows]]
    demands = [term_mask(Term((one,)), view) for one in selector_entries(pod.spec)]
    terms = required_terms(pod.spec)
    if terms is not None:
        demands.append(node_selector_mask(parse_terms(terms), view))
    for met in demands:
        columns.append((~met[rows]).astype(np.int64)[None])
        cost += ~met[rows]
    for plugin in context.profile.filters:
        if isinstance(plugin, NodeResourcesFit):
            for column, amount in plugin.asked(kind, view):
                short = np.maximum(amount - free_of(view, column)[rows], 0)
                columns.append((short > 0).astype(np.int64)[None])
                cost += short / max(amount, 1)
    for constraint in hard_constraints_of(kind, view):
        counts, limit = limit_of(constraint, view)
        over = np.maximum(counts.take(view.label(constraint.counted.topology_key)[0][rows]) - limit, 0)
        columns.append((over > 0).astype(np.int64)[None])
        cost += over
    if (distance := limited(context.profile, kind, view)) is not None:
        request, micros = distance
        columns.append((micros[rows] == UNKNOWN).astype(np.int64)[None])
        cost += np.maximum(micros[rows] - (request.limit or 0), 0) / max(request.limit or 0, 1)
    if context.devices is not None:
        lacks, missing = context.devices.costs(rows)
        columns.append(lacks[None])
        cost += missing
    return np.ascontiguousarray(np.concatenate(columns).T), cost


# -- by evicting one pod ---------------------------------------------------------------------------------------------


def _by_evicting(context: SearchContext, whatif: WhatIf) -> Iterator[Suggestion]:
    view = context.view
    masks = [one.rows & ~one.helps for one in context.verdicts.verdicts]
    hopeless = np.logical_or.reduce(masks) if masks else np.zeros(view.size, np.bool_)
    rows = np.flatnonzero(view.present & ~hopeless & (context.verdicts.blockers > 0)) if masks else np.zeros(0, int)
    if not len(rows):
        return
    _, cost = _lacks(context, rows)
    found = 0
    for victim in _victims(context, rows[np.argsort(cost, kind="stable")][:VICTIM_NODES]):
        action = evict_action(victim.key, view.names[victim.node_row])
        checked = whatif.checked(
            Suggestion((*context.required, action), context.pod, {}, (victim.key,), context.claims)
        )
        if checked is not None:
            found += 1
            yield checked
        if found >= MAX_ALIKE:
            return


def _victims(context: SearchContext, rows: IdColumn) -> list[BoundPod]:
    """Pods whose eviction alone seems to suffice on an overlay: lowest priority first, then the smallest."""
    view, found, trials = context.view, [], 0
    filters = context.profile.filters
    for row in rows.tolist():
        short = _short(context, row)
        for pod in view.pods_on(row):
            takes = dict(pod.kind.takes)
            if pod.leaving or any(takes.get(column, 0) < amount for column, amount in short):
                continue
            trials += 1
            if fits_at(filters, context.kind, view.without([pod]), row):
                found.append(pod)
        if trials >= VICTIM_TRIALS:
            break
    return sorted(found, key=lambda pod: (pod.kind.priority, pod.kind.requests.milli_cpu, pod.key))[: 2 * MAX_ALIKE]


def _short(context: SearchContext, row: int) -> list[tuple[int, int]]:
    """(column, amount) of what a row is short of."""
    for plugin in context.profile.filters:
        if isinstance(plugin, NodeResourcesFit):
            view = context.view
            lacks = [
                (column, amount - int(view.allocatable(column)[row] - view.requested(column)[row]))
                for column, amount in plugin.asked(context.kind, view)
            ]
            return [(column, amount) for column, amount in lacks if amount > 0]
    return []


# -- by one more node ------------------------------------------------------------------------------------------------


def _by_a_node(context: SearchContext, whatif: WhatIf) -> Iterator[Suggestion]:
    """The smallest node that helps. If devices are in the way, it has those of the node that it is like."""
    cluster = context.view.cluster
    nodes = [node for node in cluster.nodes.objects if node is not None]
    local = local_slices(cluster.objects.devices.slices.values()) if DEVICES in context.verdicts.refused_by else {}
    for node, like in shapes(nodes, local):
        slices = slices_like(local.get(like, ()), node.metadata.name)
        actions = (*context.required, add_action(node, like, slices))
        new = {node.metadata.name: node}
        checked = whatif.checked(Suggestion(actions, context.pod, new, (), context.claims, slices))
        if checked is not None:
            yield checked
            return


def ungate_action(pod: Pod) -> Action:
    names = ", ".join(gate.name for gate in pod.spec.scheduling_gates)
    subject = f"Pod {pod.metadata.namespace}/{pod.metadata.name}"
    return Action(ActionKind.UNGATE, f"remove the scheduling gates {names}", subject, "spec.schedulingGates", [])


def make_claims_action(pod: Pod, names: Sequence[str]) -> Action:
    """What a controller does, once it runs."""
    text = (
        f"make the claims {', '.join(names)} from their templates"
        if len(names) > 1
        else (f"make the claim {names[0]} from its template")
    )
    subject = f"Pod {pod.metadata.namespace}/{pod.metadata.name}"
    return Action(ActionKind.MAKE_CLAIMS, text, subject, "status.resourceClaimStatuses", list(names))
