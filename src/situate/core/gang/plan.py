"""The plan of a gang: a node for each of its pods, one after another, each on the draft that those before it left.

A plan with fewer pods than are needed is none. Pods are never moved within a plan: a gang of pods of different sizes
may fit and yet not be found to. So other orders are tried before it is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from situate.core.gang.draft import Draft
from situate.core.gang.draft_verdicts import DraftVerdicts
from situate.core.model.devices import AllocationResult
from situate.core.place.bind_annotations import NOTHING, BindAnnotations, assigned_devices, bind_annotations
from situate.core.place.filtering import fits_at
from situate.core.place.profile import Profile
from situate.core.place.selecting import NOWHERE
from situate.core.plugins.dynamic_resources import DynamicResources, decide
from situate.core.state.classes import PodClass
from situate.core.state.cluster import Cluster
from situate.core.state.columns import Mask
from situate.core.state.pods import BoundPod


@dataclass(frozen=True, slots=True)
class Member:
    """A pod of the gang that needs a node; and the row that is nominated for it, or NOWHERE."""

    key: str
    kind: PodClass
    nominated: int = NOWHERE
    barred: tuple[int, ...] = ()
    """Rows that it fits by itself, but not beside the others."""


@dataclass(frozen=True, slots=True)
class Plan:
    rows: tuple[int, ...]
    """By member; NOWHERE for those without a node."""
    score: int = 0
    """The sum of the scores that the chosen nodes had when they were chosen."""
    domain: str = ""
    """The topology domain that it keeps to, if any."""
    victims: tuple[BoundPod, ...] = ()
    """The pods to evict first."""
    annotations: tuple[BindAnnotations, ...] = ()
    """By member: the annotations of its bind. Empty: the assigners were not asked."""

    @property
    def count(self) -> int:
        return sum(row != NOWHERE for row in self.rows)


class Planner:
    __slots__ = ("_answers", "_bare", "_nominated", "cluster", "draft", "profile")

    def __init__(self, profile: Profile, cluster: Cluster, nominated: Sequence[tuple[PodClass, int]] = ()) -> None:
        """`nominated`: nominated pods of others, with their rows. A member must fit with and without them."""
        self.profile = profile
        self.cluster = cluster
        self._nominated = tuple(nominated)
        self.draft = Draft(cluster)
        for kind, row in nominated:
            self.draft.put(kind, row)
        self._bare = Draft(cluster) if nominated else self.draft
        self._answers: dict[PodClass, DraftVerdicts] = {}

    def fork(self) -> Planner:
        """A planner that continues from here, and leaves this one as it is."""
        made = Planner(self.profile, self.cluster)
        made._nominated = self._nominated
        made.draft = self.draft.copy()
        made._bare = self._bare.copy() if self._nominated else made.draft
        made._answers = {kind: answers.copy(made.draft) for kind, answers in self._answers.items()}
        return made

    def choose(self, member: Member, among: Mask | None) -> tuple[int, int]:
        """The best row for a member, and its score. Its nominated node goes before better ones."""
        answers = self._answers_for(member.kind)
        if member.nominated != NOWHERE and (among is None or among[member.nominated]):
            fits, score = answers.at(member.nominated)
            if fits and self._fits_without_nominated(member.kind, member.nominated):
                return member.nominated, score
        refused = dict.fromkeys(member.barred)
        while True:
            row, score = answers.best(among, refused)
            if row == NOWHERE or self._fits_without_nominated(member.kind, row):
                return row, score
            refused[row] = None

    def prepare(self, kind: PodClass) -> None:
        """Compute the verdicts on a class before forking, so that no fork has to."""
        self._answers_for(kind).refresh()

    def put(self, kind: PodClass, row: int) -> BindAnnotations:
        """Put a pod on a row; returns the annotations of its bind."""
        annotations = bind_annotations(self.profile, kind, self.draft.view, row) if self.profile.assigners else ()
        devices = assigned_devices(annotations) if annotations else ""
        claimed = self._claimed(kind, row) if kind.may_claim_devices else ()
        for draft in (self.draft,) if self._bare is self.draft else (self.draft, self._bare):
            draft.claim(claimed)
            draft.put(kind, row, devices)
        return annotations

    def _claimed(self, kind: PodClass, row: int) -> list[AllocationResult]:
        """The devices that a pod would claim on a row, beside those before it."""
        plugin = next((one for one in self.profile.filters if isinstance(one, DynamicResources)), None)
        found = None if plugin is None else decide(plugin, kind, self.draft.view, row)
        return [] if found is None else [allocation for _, allocation in found.allocations]

    def take_off(self, pods: Sequence[BoundPod]) -> list[BoundPod]:
        """Remove bound pods; returns those that were not removed already."""
        if self._bare is not self.draft:
            self._bare.take_off(pods)
        return self.draft.take_off(pods)

    def _answers_for(self, kind: PodClass) -> DraftVerdicts:
        found = self._answers.get(kind)
        if found is None:
            found = self._answers[kind] = DraftVerdicts(self.profile, kind, self.draft)
        return found

    def _fits_without_nominated(self, kind: PodClass, row: int) -> bool:
        """Nominated pods may never come, so no pod may depend on them: for its affinity, say."""
        return self._bare is self.draft or fits_at(self.profile.filters, kind, self._bare.view, row)


def plan_enough(
    planner: Planner, members: Sequence[Member], needed: int, among: Mask | None = None
) -> tuple[Plan, Planner]:
    """The first plan with enough pods: in the order of the members, the largest first, or the smallest first.

    If none has enough, the plan in the order of the members. With it, the planner that holds its draft.
    """
    first = planner.fork()
    found = plan(first, members, among)
    if found.count >= needed or len({member.kind.id for member in members}) == 1:
        return found, first
    sizes = [share(member.kind, planner.cluster) for member in members]
    largest = sorted(range(len(members)), key=lambda at: -sizes[at])
    for order in (largest, largest[::-1]):
        trial = planner.fork()
        other = plan(trial, [members[at] for at in order], among)
        if other.count >= needed:
            rows, annotations = [NOWHERE] * len(members), [NOTHING] * len(members)
            for at, row, one in zip(order, other.rows, other.annotations, strict=True):
                rows[at], annotations[at] = row, one
            return replace(other, rows=tuple(rows), annotations=tuple(annotations)), trial
    return found, first


def share(kind: PodClass, cluster: Cluster) -> float:
    """How large a pod is: its largest request as a fraction of the largest node."""
    nodes = cluster.nodes
    rooms = ((amount, int(nodes.allocatable[column, : nodes.size].max(initial=0))) for column, amount in kind.asks)
    return max((amount / room if room else float("inf") for amount, room in rooms), default=0.0)


def plan(planner: Planner, members: Sequence[Member], among: Mask | None = None) -> Plan:
    """A node for each member that fits, in order. This uses up the planner's draft.

    Members that did not fit are tried again after the others: one may want to be near another.
    """
    rows, annotations = [NOWHERE] * len(members), [NOTHING] * len(members)
    total = 0
    left = list(range(len(members)))
    while left:
        refused_at: dict[PodClass, int] = {}
        still: list[int] = []
        for at in left:
            member = members[at]
            plain = member.nominated == NOWHERE and not member.barred
            if plain and refused_at.get(member.kind) == len(planner.draft.moves):
                still.append(at)
                continue
            row, score = planner.choose(member, among)
            if row == NOWHERE:
                if not member.barred:
                    refused_at[member.kind] = len(planner.draft.moves)
                still.append(at)
                continue
            annotations[at] = planner.put(member.kind, row)
            rows[at] = row
            total += score
        if len(still) == len(left):
            break
        left = still
    return Plan(tuple(rows), total, annotations=tuple(annotations))
