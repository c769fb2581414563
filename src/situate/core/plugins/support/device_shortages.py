"""Why a node cannot give a pod its devices: the same search as the filter's, asked for more than yes or no."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from situate.core.contract import Failure, Refusal
from situate.core.devices.allocated import PoolUse
from situate.core.devices.allocator import NoSolution, allocate
from situate.core.devices.budget import SearchBudget
from situate.core.devices.errors import AllocationError
from situate.core.devices.inventory import Pool
from situate.core.devices.requests import AllocatorInputs
from situate.core.model.devices import DeviceRequestAllocationResult, ResourceClaim
from situate.core.plugins.dynamic_resources import DynamicResources
from situate.core.plugins.support.device_demand import Demand, RowJudge, demand_of
from situate.core.state.classes import PodClass
from situate.core.state.view import View

Pools = Sequence[tuple[Pool, PoolUse]]

TRIED_WORK: Final = 200_000
"""How much work a search may be that only tries out a change."""


class DeviceJudge(RowJudge):
    """Also answers what was searched on a row, and what another search would find there."""

    def __init__(self, plugin: DynamicResources, demand: Demand, view: View) -> None:
        super().__init__(plugin.searching, demand, view)
        self.demand = demand

    @property
    def inputs(self) -> AllocatorInputs:
        return self._inputs

    @property
    def bound(self) -> tuple[ResourceClaim, ...]:
        """The claims of the pod that have their devices."""
        return self._bound

    def claims_at(self, row: int) -> tuple[ResourceClaim, ...]:
        """The claims that devices are searched for; the one for extended resources is the last."""
        if not self.demand.extended or self.demand.left_over is not None:
            return self.demand.pending
        served = self._served(row)
        return (*self.demand.pending, self._variant(served)[0].claim) if served else self.demand.pending

    def unserved(self, row: int) -> list[str]:
        """The extended resources that neither devices nor the node have."""
        node = self._nodes[row]
        if node is None or not self.demand.extended or self._served(row) is not None:
            return []
        classes = self._devices.extended.classes
        return [name for name, _ in self.demand.extended if name not in classes and name not in node.status.allocatable]

    def pools_at(self, row: int) -> Pools:
        """Raises AllocationError."""
        facts = self._facts(row)
        return [] if facts is None else self._devices.pools(facts)

    def _trying(self) -> AllocatorInputs:
        return replace(self._inputs, budget=SearchBudget(TRIED_WORK))

    def can_allocate(self, claims: Sequence[ResourceClaim], pools: Pools) -> bool:
        """Whether these pools can give these claims their devices."""
        try:
            found = allocate(claims, pools, self._trying())
        except AllocationError:
            return False
        return not isinstance(found, NoSolution)

    def problem(self, claims: Sequence[ResourceClaim], pools: Pools) -> str:
        """Why these claims cannot be judged on these pools; empty if they can."""
        try:
            allocate(claims, pools, self._trying())
        except AllocationError as error:
            return str(error) or "timed out"
        return ""


def device_judge(plugin: DynamicResources, pod: PodClass, view: View) -> DeviceJudge | None:
    """None if the pod asks for no devices, or is refused whatever the nodes have."""
    demand = demand_of(pod, view)
    return None if demand is None or isinstance(demand, (Refusal, Failure)) else DeviceJudge(plugin, demand, view)


def use_of(results: Iterable[DeviceRequestAllocationResult]) -> PoolUse:
    """What these results use of one pool."""
    use = PoolUse()
    for one in results:
        if not one.admin_access:
            use.add(one, 1)
    return use
