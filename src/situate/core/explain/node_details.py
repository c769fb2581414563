"""What a pod requires of nodes themselves (labels, names, taints), and which nodes do not meet it."""

from __future__ import annotations

import numpy as np

from situate.core.explain.detail import NAMED, VerdictDetail, detail, most_first
from situate.core.explain.formatting import requirement_text, taint_text
from situate.core.model.labels import IN, Requirement, SelectorError
from situate.core.model.nodeselector import NodeSelectorTerm, Term, parse_term
from situate.core.model.pod import PodSpec
from situate.core.model.tolerations import Taint, Toleration, any_tolerates
from situate.core.plugins.support.node_selectors import term_mask
from situate.core.plugins.taint_toleration import FORBIDDING
from situate.core.state.classes import PodClass
from situate.core.state.columns import IdColumn
from situate.core.state.view import View


def untolerated(tolerations: tuple[Toleration, ...], taints: tuple[Taint, ...]) -> tuple[Taint, ...]:
    """The taints that the pod does not tolerate."""
    return tuple(taint for taint in taints if taint.effect in FORBIDDING and not any_tolerates(tolerations, taint))


def taint_details(pod: PodClass, view: View, rows: IdColumn) -> list[VerdictDetail]:
    """By taint: the nodes that have it."""
    by_taint: dict[Taint, list[int]] = {}
    sets = view.by_taint_set(lambda taints: untolerated(pod.spec.tolerations, taints))
    for row in rows.tolist():
        for taint in sets[view.taint_set[row]]:
            by_taint.setdefault(taint, []).append(row)
    return most_first(
        detail(
            view,
            np.array(those),
            f"taint {taint_text(taint)} is not tolerated",
            taint={"key": taint.key, "value": taint.value, "effect": taint.effect},
        )
        for taint, those in by_taint.items()
    )


def selector_entries(spec: PodSpec) -> list[Requirement]:
    """The nodeSelector as requirements."""
    return [Requirement(key, IN, (value,)) for key, value in spec.node_selector.items()]


def required_terms(spec: PodSpec) -> tuple[NodeSelectorTerm, ...] | None:
    """The terms of the required node affinity, one of which must match; None without such an affinity."""
    rules = None if spec.affinity is None else spec.affinity.node_affinity
    required = None if rules is None else rules.required_during_scheduling_ignored_during_execution
    return None if required is None else required.node_selector_terms


def parsed(term: NodeSelectorTerm) -> Term | None:
    """None for a term that matches nothing: an empty or an invalid one."""
    try:
        return parse_term(term)
    except SelectorError:
        return None


def affinity_details(pod: PodClass, view: View, rows: IdColumn) -> list[VerdictDetail]:
    """By requirement: the nodes that do not meet it, and what they have instead."""
    found = []
    for one in selector_entries(pod.spec):
        found.extend(_unmet("nodeSelector", one, Term((one,)), view, rows))
    terms = required_terms(pod.spec) or ()
    for number, term in enumerate(terms):
        read = parsed(term)
        where = "required node affinity" if len(terms) == 1 else f"term {number + 1} of the required node affinity"
        if read is None:
            found.append(detail(view, rows, f"{where} matches no node: it is empty or invalid"))
            continue
        for one in read.labels:
            found.extend(_unmet(where, one, Term((one,)), view, rows))
        for one in read.fields:
            found.extend(_unmet(where, one, Term((), (one,)), view, rows))
    return most_first(found)


def _unmet(where: str, one: Requirement, term: Term, view: View, rows: IdColumn) -> list[VerdictDetail]:
    unmet = rows[~term_mask(term, view)[rows]]
    if not len(unmet):
        return []
    ids, values = view.label(one.key)
    here = ids[unmet]
    counts = {values.names[at]: int((here == at).sum()) for at in dict.fromkeys(here[:1000].tolist()) if at >= 0}
    named = ", ".join(sorted(counts, key=lambda value: (-counts[value], value))[:NAMED])
    without = int((here < 0).sum())
    has = [f"they have {one.key}={named}"] if named else []
    has += [f"{without} without that label"] if without and not term.fields else []
    text = f"{where} requires {requirement_text(one)}" + (f" ({'; '.join(has)})" if has else "")
    values_shown = {"field": where, "key": one.key, "operator": one.operator, "values": list(one.values)}
    return [detail(view, unmet, text, **values_shown, withoutLabel=without)]
