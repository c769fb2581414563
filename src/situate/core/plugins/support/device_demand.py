"""What a pod asks of devices, and what each node answers: the decisions of DynamicResources, row by row.

A search depends on the specs of the claims, on the node's devices and on what is in use of them. Its outcome is
remembered by these, so nodes with equal devices in equal use are searched once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from situate.core.contract import FAILED, FITS, Failure, Refusal
from situate.core.devices.allocated import PoolUse
from situate.core.devices.allocator import NoSolution, Solution, allocate
from situate.core.devices.budget import WORK_PER_NODE, SearchBudget, TimedOutError
from situate.core.devices.claims import (
    ClaimProblemError,
    binding_failed,
    can_be_deallocated,
    pod_claims,
    reaches,
    selector_problem,
)
from situate.core.devices.errors import AllocationError
from situate.core.devices.extended import ExtendedResourceClaim, extended_claim, may_be_served
from situate.core.devices.inventory import NodeFacts, Pool
from situate.core.devices.requests import AllocatorInputs, alternatives
from situate.core.devices.results import allocation_results
from situate.core.devices.selectors import Compile
from situate.core.model.devices import AllocationResult, ResourceClaim, ResourceClaimConsumerReference
from situate.core.model.meta import ObjectMeta
from situate.core.model.node import Node
from situate.core.state.classes import PodClass
from situate.core.state.device_objects import DeviceObjects, Outcome
from situate.core.state.view import CLAIMS, DEVICES, ROW_DEVICES, View
from situate.core.versions import DeviceRules

CANNOT_ALLOCATE: Final = "cannot allocate all claims"
NOT_AVAILABLE: Final = "resourceclaim not available on the node"
INVALID_POOLS: Final = "invalid resource pools were encountered"
CANNOT_FIT: Final = "cannot fit resource"
LEFT_OVER: Final = "cannot schedule extended resource claim"

TEXTS: Final = (CANNOT_ALLOCATE, NOT_AVAILABLE, INVALID_POOLS, CANNOT_FIT, LEFT_OVER)
_CODES: Final = {text: code for code, text in enumerate(TEXTS, 1)}

MOST_ALTERNATIVES: Final = 8
"""How many alternatives a request may have; the first scores this much, the next one less."""


@dataclass(frozen=True, slots=True)
class Searching:
    """How devices are searched."""

    compile_selector: Compile
    rules: DeviceRules
    work: int
    """See DynamicResources.work."""


@dataclass(frozen=True, slots=True)
class Demand:
    """The claims of a pod, and the extended resources that devices may serve."""

    pod: PodClass
    claims: tuple[ResourceClaim, ...]
    """The claims that the pod names, in order."""
    pending: tuple[ResourceClaim, ...]
    """Those that are not allocated yet."""
    specs: tuple[int, ...]
    """The contents of the specs of `pending`."""
    extended: tuple[tuple[str, int], ...] = ()
    """(name, column) of the extended resources that the pod requests; empty if devices serve none of them."""
    left_over: ResourceClaim | None = None
    """A claim for extended resources that an earlier attempt has left."""

    @property
    def searches(self) -> bool:
        """Whether anything may have to be allocated."""
        return bool(self.pending or self.extended)


def demand_of(pod: PodClass, view: View) -> Demand | Refusal | Failure | None:
    """What a pod asks of devices; None: nothing."""
    devices = view.cluster.objects.devices
    if pod.demand is not None:
        view.reads |= DEVICES | ROW_DEVICES
        for claim in pod.demand:
            if (stopped := _unusable(claim, devices)) is not None:
                return stopped
        return Demand(pod, pod.demand, pod.demand, pod.demand_specs)
    extended = _extended_resources(pod, view)
    if not pod.spec.resource_claims and not extended:
        return None
    view.reads |= DEVICES | CLAIMS | ROW_DEVICES
    try:
        claims = pod_claims(pod.pod, devices.claims)
    except ClaimProblemError as problem:
        return Refusal(str(problem))
    if not claims and not extended:
        return None
    for claim in claims:
        stopped = _unusable(claim, devices)
        if stopped is not None:
            return stopped
    pending = tuple(claim for claim in claims if claim.status.allocation is None)
    specs = tuple(devices.spec_id(claim.spec) for claim in pending)
    left_over = None
    if extended and devices.extended_claims:
        made = devices.extended_claims.get((pod.namespace, pod.pod.metadata.uid), {})
        left_over = next((devices.claims[name] for name in made), None)
    return Demand(pod, tuple(claims), pending, specs, extended, left_over)


def _extended_resources(pod: PodClass, view: View) -> tuple[tuple[str, int], ...]:
    """The extended resources of a pod, if a DeviceClass serves at least one of them."""
    if not pod.requested_names:
        return ()
    view.reads |= DEVICES
    found = tuple((name, column) for name, column in pod.requested_names.items() if may_be_served(name))
    served = view.cluster.objects.devices.extended.classes
    return found if any(name in served for name, _ in found) else ()


def _unusable(claim: ResourceClaim, devices: DeviceObjects) -> Refusal | Failure | None:
    """Why a claim cannot be used on any node."""
    if (claim.metadata.namespace, claim.metadata.name) in devices.in_flight:
        key = f"{claim.metadata.namespace}/{claim.metadata.name}"
        return Refusal(f"resource claim {key} is in the process of being allocated")
    if claim.status.allocation is not None:
        problem = selector_problem(claim)
        return Failure(problem) if problem else None
    for request in claim.spec.devices.requests:
        if request.exactly is None and not request.first_available:
            key = f"{claim.metadata.namespace}/{claim.metadata.name}"
            return Refusal(f"resource claim {key}, request {request.name}: unknown request type")
        for parent, one in alternatives(request):
            name = f"{parent}/{one.name}" if parent else one.name
            if not one.device_class_name:
                return Failure(f"request {name}: unsupported request type")
            if one.device_class_name not in devices.classes:
                return Refusal(f"request {name}: device class {one.device_class_name} does not exist")
    return None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a node answers to a demand."""

    code: int = FITS
    problem: str = ""
    """Why the pod fails, if the code is FAILED."""
    claims: tuple[ResourceClaim, ...] = ()
    """The claims that the search was for."""
    outcome: Outcome | None = None
    extended: ExtendedResourceClaim | None = None


FINE: Final = Answer()
"""The node has nothing to give, and need not."""


class RowJudge:
    """Answers for single rows of a cluster. It is valid until a node, a class, a slice or a claim changes."""

    def __init__(self, searching: Searching, demand: Demand, view: View) -> None:
        self._searching = searching
        self._demand = demand
        self._view = view
        self._devices = view.cluster.objects.devices
        self._devices.use_rules(searching.rules)
        self._names = view.cluster.nodes.names
        self._nodes = view.cluster.nodes.objects
        self._bound = tuple(claim for claim in demand.claims if claim.status.allocation is not None)
        self._failed = tuple(claim for claim in self._bound if binding_failed(claim))
        self._budget = SearchBudget(searching.work and searching.work + WORK_PER_NODE * view.size)
        self._inputs = AllocatorInputs(
            self._devices.classes, self._devices.answers(searching.compile_selector), searching.rules, self._budget
        )
        self._variants: dict[tuple[str, ...], tuple[ExtendedResourceClaim, int]] = {}
        self._plain = not self._bound and not demand.extended

    def code(self, row: int) -> int:
        """FITS, the number of a reason, or FAILED."""
        if self._plain:
            facts = self._facts(row)
            if facts is None:
                return FITS
            try:
                pools = self._pools(facts)
            except AllocationError:
                return FAILED
            found = self._devices.outcomes.get(self._key(self._demand.specs, pools))
            if found is not None and not isinstance(found, TimedOutError):
                return _code(found)
        return self.answer(row).code

    def unavailable(self, row: int) -> list[ResourceClaim]:
        """The allocated claims of the pod that cannot be used on a node."""
        facts = self._facts(row)
        if facts is None:
            return []
        return [claim for claim in self._bound if claim in self._failed or not reaches(claim, facts)]

    def answer(self, row: int) -> Answer:
        facts = self._facts(row)
        demand = self._demand
        if facts is None:
            return FINE
        if not demand.extended:
            return self._answer(row, facts, demand.pending, demand.specs, None)
        if demand.left_over is not None:
            return Answer(_CODES[LEFT_OVER])
        served = self._served(row)
        if served is None:
            return Answer(_CODES[CANNOT_FIT])
        if not served and not demand.claims:
            return FINE
        extended, spec = self._variant(served)
        return self._answer(row, facts, (*demand.pending, extended.claim), (*demand.specs, spec), extended)

    def _answer(
        self,
        row: int,
        facts: NodeFacts,
        claims: tuple[ResourceClaim, ...],
        specs: tuple[int, ...],
        extended: ExtendedResourceClaim | None,
    ) -> Answer:
        """Search devices for these claims; only then, whether the allocated ones can be used on the node."""
        outcome: Outcome | None = None
        try:
            if claims:
                outcome = self._search(claims, specs, facts)
        except TimedOutError:
            return Answer(FAILED, f"node {facts.name}: timed out trying to allocate devices")
        except AllocationError as error:
            return Answer(FAILED, str(error))
        if isinstance(outcome, NoSolution):
            return Answer(_code(outcome))
        if self._bound and self.unavailable(row):
            return Answer(_CODES[NOT_AVAILABLE])
        return Answer(FITS, "", claims, outcome, extended)

    def _search(self, claims: Sequence[ResourceClaim], specs: tuple[int, ...], facts: NodeFacts) -> Outcome:
        pools = self._pools(facts)
        key = self._key(specs, pools)
        found = self._devices.outcomes.get(key)
        if isinstance(found, TimedOutError):
            raise found
        if found is None:
            found = self._searched(claims, pools, key)
            if not isinstance(found, NoSolution):
                self._results(found, claims, [pool for pool, _ in pools], facts.name)  # an error fails the pod
            self._devices.remember(key, found)
        return found

    def _searched(
        self, claims: Sequence[ResourceClaim], pools: Sequence[tuple[Pool, PoolUse]], key: tuple[object, ...]
    ) -> Outcome:
        budget, answers = self._budget, self._inputs.answers
        left, asked, fresh = budget.left, answers.asked, budget.is_fresh
        try:
            return allocate(claims, pools, self._inputs)
        except TimedOutError as timed_out:
            # If a selector was asked, the next attempt knows its answer and gets further.
            if fresh and answers.asked == asked:
                self._devices.remember(key, timed_out.with_traceback(None))
            raise
        finally:
            self._devices.work += left - budget.left

    def _pools(self, facts: NodeFacts) -> list[tuple[Pool, PoolUse]]:
        """The pools of a node, with what is in use. Raises AllocationError."""
        pools, claimed = self._devices.pools(facts), self._view.claimed
        return [(pool, claimed.get(pool.id, use)) for pool, use in pools] if claimed else pools

    def _key(self, specs: tuple[int, ...], pools: Sequence[tuple[Pool, PoolUse]]) -> tuple[object, ...]:
        return (specs, *[(pool.content, use.key) for pool, use in pools])

    def allocations(self, row: int, answer: Answer) -> list[AllocationResult]:
        """The results for the claims of an answer."""
        facts = self._facts(row)
        if facts is None or answer.outcome is None or isinstance(answer.outcome, NoSolution):
            return []
        pools = [pool for pool, _ in self._devices.pools(facts)]
        return self._results(answer.outcome, answer.claims, pools, facts.name)

    def _results(
        self, solution: Solution, claims: Sequence[ResourceClaim], pools: Sequence[Pool], node: str
    ) -> list[AllocationResult]:
        return allocation_results(solution, claims, pools, node, self._inputs)

    def score(self, row: int) -> int:
        """The alternatives that the pod would get: the earlier in their lists, the better."""
        answer = self.answer(row)
        if answer.code != FITS or not self._demand.searches:
            return 0
        if answer.outcome is None or isinstance(answer.outcome, NoSolution):
            return 0
        total = sum(_score_of(claim) for claim in self._bound)
        for claim, picks in zip(answer.claims, answer.outcome, strict=True):
            chosen = {pick.request: pick.alternative for pick in picks}
            for request, alternative in chosen.items():
                if claim.spec.devices.requests[request].first_available:
                    total += MOST_ALTERNATIVES - alternative
        return total

    # -- nodes -----------------------------------------------------------------------------------------------------

    def _facts(self, row: int) -> NodeFacts | None:
        node: Node | None = self._nodes[row]
        return None if node is None else NodeFacts(self._names[row], node.metadata.labels)

    def _served(self, row: int) -> tuple[str, ...] | None:
        """The extended resources that devices serve on a node; None if it lacks one that they do not serve."""
        classes = self._devices.extended.classes
        cells = self._view.cluster.nodes.allocatable_cells
        node: Node | None = self._nodes[row]
        found = []
        for name, column in self._demand.extended:
            if name in classes and not cells[column][row]:
                found.append(name)
            elif node is not None and name not in node.status.allocatable:
                return None
        return tuple(found)

    def _variant(self, served: tuple[str, ...]) -> tuple[ExtendedResourceClaim, int]:
        """The claim for the extended resources that devices serve on a node."""
        found = self._variants.get(served)
        if found is None:
            made = extended_claim(self._demand.pod.pod, served, self._devices.extended.classes)
            found = self._variants[served] = made, self._devices.spec_id(made.claim.spec)
        return found


def _code(outcome: Outcome) -> int:
    if not isinstance(outcome, NoSolution):
        return FITS
    return _CODES[INVALID_POOLS if outcome.invalid_pools else CANNOT_ALLOCATE]


def _score_of(claim: ResourceClaim) -> int:
    """The same for a claim that is allocated."""
    allocation = claim.status.allocation
    got = set() if allocation is None else {one.request for one in allocation.devices.results}
    return sum(
        MOST_ALTERNATIVES - number
        for request in claim.spec.devices.requests
        if request.exactly is None
        for number, one in enumerate(request.first_available)
        if f"{request.name}/{one.name}" in got
    )


def may_score(demand: Demand) -> bool:
    """Whether nodes can score differently: something is searched, and a claim has alternatives."""
    return demand.searches and any(
        request.first_available for claim in demand.claims for request in claim.spec.devices.requests
    )


@dataclass(frozen=True, slots=True)
class DeviceDecision:
    """The devices for a pod on one node."""

    allocations: tuple[tuple[ResourceClaim, AllocationResult], ...] = ()
    """The claims that get devices now, with the results; the claim for extended resources last."""
    reserved: tuple[ResourceClaim, ...] = ()
    """The claims of the pod that were allocated before."""
    extended: ExtendedResourceClaim | None = None
    """The claim for extended resources that has to be created."""


NO_DEVICES: Final = DeviceDecision()


def deallocatable(judge: RowJudge, rows: Sequence[int], pod_uid: str) -> ResourceClaim | None:
    """The first allocated claim that is in the way on one of these rows, and that no other pod uses."""
    blocking: dict[tuple[str, str], ResourceClaim] = {}
    for row in rows:
        for claim in judge.unavailable(row):
            blocking[claim.metadata.namespace, claim.metadata.name] = claim
    return next((claim for claim in blocking.values() if can_be_deallocated(claim, pod_uid)), None)


def written_claims(decision: DeviceDecision, pod: ObjectMeta) -> list[ResourceClaim]:
    """The claims of a pod as they will be once its devices are given to it."""
    claims = [replace(claim, status=replace(claim.status, allocation=one)) for claim, one in decision.allocations]
    return [_reserved(claim, pod) for claim in (*decision.reserved, *claims)]


def _reserved(claim: ResourceClaim, pod: ObjectMeta) -> ResourceClaim:
    if any(user.uid == pod.uid for user in claim.status.reserved_for):
        return claim
    user = ResourceClaimConsumerReference(resource="pods", name=pod.name, uid=pod.uid)
    return replace(claim, status=replace(claim.status, reserved_for=(*claim.status.reserved_for, user)))
