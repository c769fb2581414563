"""The score of a pod's soft topology spread constraints.

A node scores lower the more matching pods its domains hold. A constraint weighs more the more domains it has, so that
hostnames do not drown out zones; maxSkew is added to every node, so that small differences wash out.
"""

from __future__ import annotations

from math import floor, log
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from situate.core.contract import MAX_SCORE, DomainScores, Scores
from situate.core.plugins.support.domains import FEW_DOMAINS, rows_by_domain
from situate.core.plugins.support.spread_combinations import RowCombinations
from situate.core.plugins.support.spread_constraints import (
    NAME,
    Constraint,
    MatchCounter,
    counted,
    keyed_nodes,
    keys_of,
    seen_domains,
)
from situate.core.state.classes import PodClass
from situate.core.state.columns import IdColumn, IntColumn, Mask
from situate.core.state.view import View
from situate.core.state.vocab import ABSENT

HOSTNAME: Final = "kubernetes.io/hostname"

Sums = npt.NDArray[np.float64]


class Topology(Struct, frozen=True):
    """The domains of a topology key among the nodes that can be scored."""

    ids: IdColumn
    unlabelled: Mask | None
    """The nodes without the key; None if all have it."""
    blank: int
    """The domain of the empty value, which nodes without the label count as; ABSENT if there is none."""
    in_use: Mask
    """The domains if every node is scored."""


class SoftConstraint(Struct, frozen=True):
    """One constraint, with all that depends on nodes alone."""

    counted: MatchCounter
    allowance: float
    """What its skew adds to every node."""
    by_node: bool
    """Hostnames are counted node by node, whatever value the label has and whichever nodes are eligible."""
    topology: Topology


class CountPair(Struct, frozen=True):
    """A constraint on hostnames and another one, and the combinations of what they count."""

    hosts: SoftConstraint
    other: SoftConstraint
    rows: RowCombinations


class SoftPlan(Struct, frozen=True):
    """The soft constraints of a pod."""

    constraints: tuple[SoftConstraint, ...]
    keyed: Mask
    """The nodes that can be scored; others get 0."""
    keyed_count: int
    pair: CountPair | None = None
    """If the constraints are one on hostnames and another one."""


def soft_plan(pod: PodClass, constraints: tuple[Constraint, ...], view: View, *, needs_keys: bool) -> SoftPlan | None:
    """With `needs_keys` only nodes that have every constraint's key are counted and scored."""
    if not constraints:
        return None
    keys = keys_of(constraints) if needs_keys else ()
    keyed = keyed_nodes(keys, view)
    keyed_count = view.memo((NAME, "keyed count", keys), lambda _: int(np.count_nonzero(keyed)))
    made = tuple(_soft(pod, one, keys, view) for one in constraints)
    return SoftPlan(made, keyed, keyed_count, _pair(made, view))


def _pair(constraints: tuple[SoftConstraint, ...], view: View) -> CountPair | None:
    """None unless the constraints are one on hostnames, which every node has, and another one."""
    hosts = [one for one in constraints if one.by_node and one.topology.unlabelled is None]
    others = [one for one in constraints if not one.by_node]
    if (len(constraints), len(hosts), len(others)) != (2, 1, 1):
        return None
    counted, topology = hosts[0].counted, others[0].topology
    key = (NAME, "combinations", counted.matcher, counted.counts_nobody, others[0].counted.topology_key)
    rows = view.memo(key, lambda _: RowCombinations(topology.ids, len(topology.in_use) - 1))
    return CountPair(hosts[0], others[0], rows)


def _soft(pod: PodClass, constraint: Constraint, keys: tuple[str, ...], view: View) -> SoftConstraint:
    topology_key = constraint.topology_key
    return SoftConstraint(
        counted=counted(pod, constraint, keys, view),
        allowance=float(constraint.max_skew - 1),
        by_node=topology_key == HOSTNAME,
        topology=view.memo((NAME, "topology", topology_key, keys), lambda whole: _topology(topology_key, keys, whole)),
    )


def _topology(topology_key: str, keys: tuple[str, ...], whole: View) -> Topology:
    ids, values = whole.label(topology_key)
    in_use = seen_domains(ids, len(values), keyed_nodes(keys, whole))
    blank = values.find("")
    if not (in_use[ABSENT] and blank != ABSENT and in_use[blank]):
        blank = ABSENT
    unlabelled = ids < 0
    return Topology(ids, unlabelled if unlabelled.any() else None, blank, in_use)


def spread_scores(plan: SoftPlan, view: View) -> DomainScores | Scores:
    """0..100 per node: the fewer matching pods its domains hold, the higher."""
    feasible = view.feasible
    if plan.keyed_count == view.size:
        scored, count = feasible, int(np.count_nonzero(feasible))
    else:
        scored = feasible & plan.keyed
        count = int(np.count_nonzero(scored))
    if not count:
        return np.zeros(view.size, np.int64)
    # None stands for all nodes that can be scored, which is cheaper.
    some = None if count == plan.keyed_count else scored
    if len(plan.constraints) == 1 and not plan.constraints[0].by_node:
        return _scores_by_domain(plan.constraints[0], view, some, count)
    if plan.pair is not None and view.is_plain and not view.once:
        scores = _scores_by_combination(plan.pair, view, scored)
        if scores is not None:
            if plan.keyed_count < view.size:
                scores *= plan.keyed
            return scores
    sums = _sums(plan.constraints[0], view, some, count)
    for constraint in plan.constraints[1:]:
        sums += _sums(constraint, view, some, count)
    _round(sums)
    scores = _normalised(sums, sums if count == view.size else sums[scored])
    if plan.keyed_count < view.size:
        scores *= plan.keyed
    return scores


def _scores_by_domain(constraint: SoftConstraint, view: View, some: Mask | None, count: int) -> DomainScores | Scores:
    """The scores of a single constraint, computed by domain."""
    seen = _seen(constraint, view, some, count)
    counts = constraint.counted.counts(view)
    if len(counts) <= FEW_DOMAINS:
        table = _scores_of_few(counts.tolist(), seen.tolist(), constraint.allowance)
        if view.row is None:
            return DomainScores(constraint.counted.topology_key, table, {})
        return np.array(table, np.int32).take(constraint.topology.ids)
    sums = _weighed(counts, int(np.count_nonzero(seen)))
    sums += constraint.allowance
    _round(sums)
    scores = _normalised(sums, sums[seen]).astype(np.int32)
    scores[ABSENT] = 0
    return scores.take(constraint.topology.ids)


def _scores_of_few(counts: list[int], seen: list[bool], allowance: float) -> list[int]:
    """The same for a few domains, with numbers of Python: setting up arrays takes longer."""
    weight = log(sum(seen) + 2)
    sums = [float(floor(count * weight + allowance + 0.5)) for count in counts]
    within = [each for each, is_seen in zip(sums, seen, strict=True) if is_seen]
    least, greatest = min(within), max(within)
    if greatest == 0.0:
        scores = [MAX_SCORE] * len(sums)
    else:
        scores = [int((least + greatest - each) * MAX_SCORE / greatest) for each in sums]
    scores[ABSENT] = 0
    return scores


def _scores_by_combination(pair: CountPair, view: View, scored: Mask) -> IntColumn | None:
    """The scores for two constraints, computed for each combination of a node's own count and its domain. None if there
    are too many of them."""
    rows, hosts, other = pair.rows, pair.hosts, pair.other
    if not rows.update(hosts.counted.counts_by_row(view, None), scored):
        return None
    present = rows.found > 0
    seen: Mask = np.logical_or.reduce(present, axis=0)
    table = _weighed(_counts(other, view), _distinct(seen, other.topology.blank))
    table += other.allowance
    table[ABSENT] = 0.0
    by_count = _weighed(np.arange(len(present)), rows.scored)
    by_count += hosts.allowance
    sums = np.add.outer(by_count, table)
    _round(sums)
    return _normalised(sums.ravel(), sums[present]).take(rows.combination, mode="clip")


def _sums(constraint: SoftConstraint, view: View, some: Mask | None, count: int) -> Sums:
    """What one constraint adds to each node, as a new array."""
    if constraint.by_node:
        by_row = _weighed(constraint.counted.counts_by_row(view, None), count)
        by_row += constraint.allowance
        if constraint.topology.unlabelled is not None:
            by_row[constraint.topology.unlabelled] = 0.0
        return by_row
    table = _weighed(
        _counts(constraint, view), _distinct(_seen(constraint, view, some, count), constraint.topology.blank)
    )
    table += constraint.allowance
    table[ABSENT] = 0.0
    return table.take(constraint.topology.ids)


def _counts(constraint: SoftConstraint, view: View) -> IntColumn:
    counts = constraint.counted.counts(view)
    if constraint.topology.blank == ABSENT or constraint.topology.unlabelled is None:
        return counts
    counts = counts.copy()
    counts[constraint.topology.blank] += constraint.counted.counts_by_row(view, constraint.counted.eligible)[
        constraint.topology.unlabelled
    ].sum()
    return counts


def _seen(constraint: SoftConstraint, view: View, some: Mask | None, count: int) -> Mask:
    """The domains of the nodes that are scored; None stands for all that can be."""
    topology = constraint.topology
    if some is None:
        return topology.in_use
    domains = len(topology.in_use) - 1
    if view.row is None and domains < FEW_DOMAINS:
        return np.array(rows_by_domain(view, constraint.counted.topology_key, some, count), np.bool_)
    return seen_domains(topology.ids, domains, some)


def _distinct(seen: Mask, blank: int) -> int:
    """The number of distinct values. A missing label counts as the empty value."""
    return int(np.count_nonzero(seen)) - bool(blank != ABSENT and seen[blank] and seen[ABSENT])


def _weighed(counts: IntColumn, domains: int) -> Sums:
    """The weight of a constraint, which grows with its number of domains."""
    return np.multiply(counts, log(domains + 2), dtype=np.float64)


def _round(sums: Sums) -> None:
    """Rounds in place, halves up. Exact: a sum is 0 or at least a half."""
    sums += 0.5
    np.floor(sums, out=sums)


def _normalised(sums: Sums, within: Sums) -> IntColumn:
    """Invert and scale to 0..100 by the lowest and highest scored sum. Overwrites `sums`.

    Exact in floats: the sums are integers, far too small for a quotient to be rounded up to the next one.
    """
    least, greatest = float(within.min()), float(within.max())
    if greatest == 0.0:
        return np.full(len(sums), MAX_SCORE, np.int64)
    np.subtract(least + greatest, sums, out=sums)
    sums *= MAX_SCORE
    sums /= greatest
    return sums.astype(np.int64)
