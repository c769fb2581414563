"""Room for a gang: which pods to evict so that as many of its pods as are needed fit, all together.

Each member that fits nowhere preempts as a single pod would, on the draft that those before it left; victims add up. No
pod is evicted for more members than are needed, and none at all if the victims do not suffice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from situate.core.gang.plan import Member, Plan, Planner, plan
from situate.core.gang.topology import Confined, Domain
from situate.core.place.diagnosis import diagnose
from situate.core.place.filtering import fits_at, run_filters
from situate.core.place.selecting import NOWHERE
from situate.core.preempt import PreemptionOptions, post_filter
from situate.core.preempt.budgets import Budgets
from situate.core.preempt.evictable import Evictable
from situate.core.preempt.lower_priority import LowerPods
from situate.core.preempt.preemption import PreemptionInputs
from situate.core.state.columns import Mask
from situate.core.state.pods import BoundPod
from situate.core.state.view import View

BUDGETS_FORBID: Final = "preemption: the victims together would violate a PodDisruptionBudget"

PLANS_LIMIT: Final = 4
"""From how many domains with victims the least harmful is chosen: finding victims takes time."""

WithIt: TypeAlias = Callable[[BoundPod, int], Sequence[BoundPod] | None]
"""All pods that leave with a victim, including itself, for a preemptor of this priority; None: it must not go."""


class LowerOnDraft(LowerPods):
    """The pods that may be evicted for a gang: after one is removed, only its row is computed again."""

    __slots__ = ()

    def gone(self, pods: Sequence[BoundPod], view: View) -> None:
        """These pods were removed from the draft, which looks like `view` now."""
        self.view = view
        for pod in pods:
            if pod.kind.priority < self.priority:
                takes = dict(pod.kind.takes)
                for column, taken in self._taken.items():
                    taken[pod.node_row] -= takes.get(column, 0)
                self._drop(pod.node_row)


@dataclass(slots=True)
class _Search:
    rows: list[int]
    score: int = 0
    victims: dict[int, BoundPod] = field(default_factory=dict)
    """By pod row; pods that are leaving already are not here."""
    message: str = ""
    """The message of preemption for the first member that it could not help."""
    lower: dict[int, LowerOnDraft] = field(default_factory=dict)
    """The pods that may be evicted, by the priority of the preempting member."""

    @property
    def count(self) -> int:
        return sum(row != NOWHERE for row in self.rows)


def make_room(
    planner: Planner,
    members: Sequence[Member],
    needed: int,
    options: PreemptionOptions,
    with_it: WithIt,
    domain: Domain | None = None,
) -> Plan | str:
    """A plan with victims, or why there is none. This uses up the planner's draft."""
    among = None if domain is None else domain.rows
    search = _Search([NOWHERE] * len(members))
    for at, member in enumerate(members):
        row, score = planner.choose(member, among)
        if row == NOWHERE and search.count < needed:
            row = _evict_for(planner, member, options, with_it, among, search)
        if row != NOWHERE:
            planner.put(member.kind, row)
            search.rows[at] = row
            search.score += score
    if search.count < needed:
        return search.message
    if options.never_break_budgets and _breaks_budgets(planner, search):
        return BUDGETS_FORBID
    victims = sorted(search.victims.values(), key=lambda victim: victim.key)
    return Plan(tuple(search.rows), search.score, "" if domain is None else domain.value, tuple(victims))


def make_room_somewhere(
    planner: Planner,
    members: Sequence[Member],
    needed: int,
    options: PreemptionOptions,
    with_it: WithIt,
    within: Sequence[Domain | None],
) -> Plan | str:
    """The least harmful plan with victims in one of these domains; or why there is none in the first.

    Domains where more members fit without evictions are tried first, until there are enough plans to choose from.
    """
    fit = (
        {
            at: plan(planner.fork(), members, None if domain is None else domain.rows).count
            for at, domain in enumerate(within)
        }
        if len(within) > 1
        else {0: 0}
    )
    plans: list[Plan] = []
    message = ""
    for at in sorted(fit, key=lambda at: -fit[at]):
        found = make_room(planner.fork(), members, needed, options, with_it, within[at])
        if isinstance(found, Plan):
            plans.append(found)
            if len(plans) == PLANS_LIMIT:
                break
        elif at == 0:
            message = found
    return least_harmful(plans) if plans else message


def least_harmful(plans: Sequence[Plan]) -> Plan:
    """The plan whose victims matter least, then with the fewest, the most pods, the best score; else the first."""
    return min(
        plans,
        key=lambda one: (
            max((victim.kind.priority for victim in one.victims), default=-(1 << 31)),
            len(one.victims),
            -one.count,
            -one.score,
        ),
    )


def _evict_for(
    planner: Planner, member: Member, options: PreemptionOptions, with_it: WithIt, among: Mask | None, search: _Search
) -> int:
    """The row where a member fits once its victims are removed from the draft; NOWHERE if there is none."""
    profile, kind, view = planner.profile, member.kind, planner.draft.view
    seen = view if among is None else Confined(view, among)
    filtered = run_filters(profile, kind, seen)
    if filtered.failed is not None:
        return NOWHERE
    lower = search.lower.get(kind.priority)
    if lower is None:
        lower = search.lower[kind.priority] = LowerOnDraft(view, kind.priority)
    diagnosis = diagnose(profile, kind, seen, filtered)
    result = post_filter(profile, kind, view, diagnosis, options, known=PreemptionInputs(lower=lower))
    if result.node_row is None:
        search.message = search.message or result.message
        return NOWHERE
    leaving = [pod for pod in view.pods_on(result.node_row) if pod.leaving and pod.kind.priority < kind.priority]
    going = all_going(result.victims, kind.priority, with_it)
    if going is None or not _fits(planner, member, [*leaving, *going], result.node_row):
        return NOWHERE
    new = planner.take_off([*leaving, *going])
    for table in search.lower.values():
        table.gone(new, planner.draft.view)
    search.victims.update((victim.row, victim) for victim in going if not victim.leaving)
    return result.node_row


def all_going(victims: Sequence[BoundPod], priority: int, with_it: WithIt) -> list[BoundPod] | None:
    """The victims and all that leave with them; None if one of those must not go."""
    found: dict[int, BoundPod] = {}
    for victim in victims:
        going = with_it(victim, priority)
        if going is None:
            return None
        found.update((pod.row, pod) for pod in going)
    return list(found.values())


def _fits(planner: Planner, member: Member, gone: Sequence[BoundPod], row: int) -> bool:
    """Whether the member fits once all these are gone: more may go than preemption planned."""
    return fits_at(planner.profile.filters, member.kind, planner.draft.view.without(gone), row)


def _breaks_budgets(planner: Planner, search: _Search) -> bool:
    """Each eviction keeps the budgets by itself; all of them together must too."""
    going = [Evictable(pod.row, pod.kind, 0, pod.key) for pod in search.victims.values()]
    return bool(Budgets.of(View(planner.cluster)).split(going)[0])
