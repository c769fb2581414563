"""Why a gang has no plan: what refused its first pod without a node, and which plugins refused any of its pods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from situate.core.gang.plan import Member, Plan, Planner
from situate.core.gang.topology import Confined, Domain
from situate.core.place.diagnosis import diagnose
from situate.core.place.filtering import run_filters
from situate.core.place.selecting import NOWHERE

UNSCHEDULABLE: Final = "pod group is unschedulable"
PREEMPTING: Final = "pod group is waiting for preemption to complete"

CLASSES_LIMIT: Final = 16
"""For a gang with more classes of pods than this, any change may help."""


@dataclass(frozen=True, slots=True)
class Explained:
    """The reason in words, and the filters that refused a node to any member."""

    text: str
    unschedulable_plugins: tuple[str, ...]
    """Empty: any change may help."""
    failure: str = ""
    """The error of a filter that failed: the gang is tried again as after an error."""


def explain(
    planner: Planner, members: Sequence[Member], plan: Plan, needed: int, domain: Domain | None = None
) -> Explained:
    """Explain a plan with too few pods, with the planner that made it.

    A pod that has a node in the plan counts too: on another node, it might have left room for the rest.
    """
    view = planner.draft.view
    seen = view if domain is None else Confined(view, domain.rows)
    first = next((member for member, row in zip(members, plan.rows, strict=True) if row == NOWHERE), members[0])
    kinds = list(dict.fromkeys(member.kind for member in members))
    plugins: dict[str, None] = {}
    text = ""
    for kind in kinds if len(kinds) <= CLASSES_LIMIT else [first.kind]:
        filtered = run_filters(planner.profile, kind, seen)
        if filtered.failed is not None:
            return Explained("", (), f"failed to schedule other pod from a pod group: {filtered.failure}")
        diagnosis = diagnose(planner.profile, kind, seen, filtered)
        plugins.update(dict.fromkeys(diagnosis.plugins))
        if kind is first.kind:
            text = diagnosis.message()
    fits = f"{plan.count} of {needed} {'pod' if needed == 1 else 'pods'} that it needs fit"
    unschedulable_plugins = tuple(plugins) if len(kinds) <= CLASSES_LIMIT else ()
    return Explained(f"{UNSCHEDULABLE}: {fits}; pod {first.key}: {text}", unschedulable_plugins)


def no_domain(key: str) -> str:
    return f'0/0 placements are available: no node has label "{key}"'


def no_placement(count: int, first: str) -> str:
    return f"0/{count} placements are available, first placement status: {first}"


def several_domains(taken: Sequence[str]) -> str:
    return f"more than 1 domain found for pod group: {', '.join(taken)}"
