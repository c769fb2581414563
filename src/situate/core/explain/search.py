"""The smallest ways to make a pod fit: guesses from the verdicts, each tried before it is offered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from situate.core.explain.demands import required_terms, selector_entries, untolerated
from situate.core.explain.distance import limited
from situate.core.explain.fixes import FIXES, Place, evict_step
from situate.core.explain.neighbours import hard_constraints_of, limit_of
from situate.core.explain.room import free_of
from situate.core.explain.shapes import add_step, shapes
from situate.core.explain.verdicts import Verdicts
from situate.core.explain.ways import Draft, Step, StepKind, Way
from situate.core.explain.whatif import WhatIf
from situate.core.model.nodeselector import Term, parse_terms
from situate.core.model.pod import Pod
from situate.core.place.filtering import fits_at
from situate.core.place.profile import Profile
from situate.core.plugins.latency import UNKNOWN
from situate.core.plugins.node_resources_fit import NodeResourcesFit
from situate.core.plugins.support.node_selectors import node_selector_mask, term_mask
from situate.core.state.classes import PodClass
from situate.core.state.columns import IdColumn
from situate.core.state.pods import BoundPod
from situate.core.state.view import View

PLACES: Final = 6
"""How many nodes of those refused by the same filters are tried, each for a different lack."""
TRIED_TOGETHER: Final = 8
"""How many nodes are tried where several filters have to be satisfied at once."""
VICTIM_NODES: Final = 64
"""On how many nodes a single pod to evict is looked for."""
VICTIM_TRIALS: Final = 400
"""How many pods are looked at for that."""
OF_A_KIND: Final = 3
"""How many ways of the same steps are offered."""
MOST_WAYS: Final = 12


@dataclass(frozen=True, slots=True)
class Question:
    """A pod that does not fit, and where."""

    profile: Profile
    view: View
    pod: Pod
    kind: PodClass
    verdicts: Verdicts
    begun: tuple[Step, ...] = ()
    """Steps that have to be taken in any case."""

    def draft(self, row: int) -> Draft:
        node = self.view.node(row)
        if node is None:
            raise LookupError(f"there is no node at row {row}")
        return Draft(self.pod, node, self.begun)


def smallest_ways(question: Question) -> tuple[Way, ...]:
    """At most so many of each kind, those with the fewest steps first."""
    whatif = WhatIf(question.view.cluster, question.profile)
    found: dict[str, Way] = {}
    for guess in (*_by_fixing(question, whatif), *_by_evicting(question, whatif), *_by_a_node(question, whatif)):
        found.setdefault(guess.text, guess)
    kept: list[Way] = []
    for way in sorted(found.values(), key=lambda one: len(one.steps)):
        kinds = [step.kind for step in way.steps]
        alike = sum([step.kind for step in one.steps] == kinds for one in kept)
        if alike < OF_A_KIND and not any(_more_than(way, one) for one in kept):
            kept.append(way)
    return tuple(kept[:MOST_WAYS])


def _more_than(way: Way, other: Way) -> bool:
    """Whether a way asks for all that another does, and for more."""
    asks, less = _steps(way), _steps(other)
    return len(asks) > len(less) and all(step in asks for step in less)


def _steps(way: Way) -> list[tuple[StepKind, str]]:
    """How much less is asked for is not compared: whoever asks for less of one thing on top asks for more."""
    return [(step.kind, step.field if step.kind is StepKind.ASK_LESS else step.text) for step in way.steps]


# -- by satisfying the filters ---------------------------------------------------------------------------------------


def _by_fixing(question: Question, whatif: WhatIf) -> Iterator[Way]:
    """Where one filter refuses, any of its fixes; only if none of that helps, several at once."""
    blockers = question.verdicts.blockers
    if not len(blockers):
        return
    present = question.view.present
    found = 0
    for count in range(1, int(blockers.max(initial=0)) + 1):
        rows = np.flatnonzero(present & (blockers == count))
        if not len(rows):
            continue
        for way in _tried(question, whatif, _drafts(question, rows, several=count > 1)):
            found += 1
            yield way
        if found:
            return


def _tried(question: Question, whatif: WhatIf, drafts: Iterable[Draft]) -> Iterator[Way]:
    """Those that help; each sequence of steps once."""
    seen: dict[tuple[str, ...], None] = {}
    view = question.view
    for draft in drafts:
        texts = tuple(step.text for step in draft.steps)
        if texts in seen or not texts:
            continue
        seen[texts] = None
        name = draft.node.metadata.name
        changed = view.node(view.find(name)) != draft.node
        way = Way(draft.steps, draft.pod, {name: draft.node} if changed else {}, draft.evicted)
        checked = whatif.checked(way)
        if checked is not None:
            yield checked


def _drafts(question: Question, rows: IdColumn, *, several: bool) -> Iterator[Draft]:
    for row in _representatives(question, rows, TRIED_TOGETHER if several else PLACES):
        place = Place(question.profile, question.view, row)
        plugins = [name for name, mask in question.verdicts.refused_by.items() if mask[row]]
        if any(name not in FIXES for name in plugins):
            continue
        if len(plugins) == 1:
            for fix in FIXES[plugins[0]]:
                fixed = fix(place, question.draft(row))
                if fixed is not None:
                    yield fixed
            continue
        draft: Draft | None = question.draft(row)
        for name in plugins:
            draft = FIXES[name][0](place, draft) if draft is not None else None
        if draft is not None:
            yield draft


def _representatives(question: Question, rows: IdColumn, most: int) -> list[int]:
    """Rows that lack different things, and of those that lack the same the one that lacks least of it."""
    lack, cost = _lacks(question, rows)
    order = np.argsort(cost, kind="stable")
    first: dict[bytes, int] = {}
    for at in order.tolist():
        first.setdefault(lack[at].tobytes(), int(rows[at]))
        if len(first) >= most:
            break
    return list(first.values())


def _lacks(question: Question, rows: IdColumn) -> tuple[np.ndarray, np.ndarray]:
    """What each row lacks, as numbers that are equal for the same lack; and how much, to compare."""
    view, pod, kind = question.view, question.pod, question.kind
    columns = [np.stack([mask[rows] for mask in question.verdicts.refused_by.values()]).astype(np.int64)]
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
    for plugin in question.profile.filters:
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
    if (distance := limited(question.profile, kind, view)) is not None:
        wish, micros = distance
        columns.append((micros[rows] == UNKNOWN).astype(np.int64)[None])
        cost += np.maximum(micros[rows] - (wish.limit or 0), 0) / max(wish.limit or 0, 1)
    return np.ascontiguousarray(np.concatenate(columns).T), cost


# -- by evicting one pod ---------------------------------------------------------------------------------------------


def _by_evicting(question: Question, whatif: WhatIf) -> Iterator[Way]:
    view = question.view
    masks = [one.rows & ~one.helps for one in question.verdicts.said]
    hopeless = np.logical_or.reduce(masks) if masks else np.zeros(view.size, np.bool_)
    rows = np.flatnonzero(view.present & ~hopeless & (question.verdicts.blockers > 0)) if masks else np.zeros(0, int)
    if not len(rows):
        return
    _, cost = _lacks(question, rows)
    found = 0
    for victim in _victims(question, rows[np.argsort(cost, kind="stable")][:VICTIM_NODES]):
        step = evict_step(victim.key, view.names[victim.node_row])
        checked = whatif.checked(Way((*question.begun, step), question.pod, {}, (victim.key,)))
        if checked is not None:
            found += 1
            yield checked
        if found >= OF_A_KIND:
            return


def _victims(question: Question, rows: IdColumn) -> list[BoundPod]:
    """Pods whose going alone would do, as far as an overlay can tell: the least important first, then the smallest."""
    view, found, trials = question.view, [], 0
    filters = question.profile.filters
    for row in rows.tolist():
        short = _short(question, row)
        for pod in view.pods_on(row):
            takes = dict(pod.kind.takes)
            if pod.leaving or any(takes.get(column, 0) < amount for column, amount in short):
                continue
            trials += 1
            if fits_at(filters, question.kind, view.without([pod]), row):
                found.append(pod)
        if trials >= VICTIM_TRIALS:
            break
    return sorted(found, key=lambda pod: (pod.kind.priority, pod.kind.requests.milli_cpu, pod.key))[: 2 * OF_A_KIND]


def _short(question: Question, row: int) -> list[tuple[int, int]]:
    """(column, amount) of what a row is short of."""
    for plugin in question.profile.filters:
        if isinstance(plugin, NodeResourcesFit):
            view = question.view
            lacks = [
                (column, amount - int(view.allocatable(column)[row] - view.requested(column)[row]))
                for column, amount in plugin.asked(question.kind, view)
            ]
            return [(column, amount) for column, amount in lacks if amount > 0]
    return []


# -- by one more node ------------------------------------------------------------------------------------------------


def _by_a_node(question: Question, whatif: WhatIf) -> Iterator[Way]:
    """The smallest shape that does."""
    nodes = [node for node in question.view.cluster.nodes.objects if node is not None]
    for node, like in shapes(nodes):
        step = add_step(node, like)
        checked = whatif.checked(Way((*question.begun, step), question.pod, {node.metadata.name: node}))
        if checked is not None:
            yield checked
            return


def ungating(pod: Pod) -> Step:
    names = ", ".join(gate.name for gate in pod.spec.scheduling_gates)
    subject = f"Pod {pod.metadata.namespace}/{pod.metadata.name}"
    return Step(StepKind.UNGATE, f"remove the scheduling gates {names}", subject, "spec.schedulingGates", [])
