"""What pods request of a node, computed once for all pods that share a spec: those created from one template."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

import msgspec

from situate.core.model.ledger import Amounts, Port, amounts_of, ports_of, served_by_devices
from situate.core.model.pod import Pod, PodExtendedResourceClaimStatus
from situate.server.requests import Object

MOST: Final = 256


class SpecDemand(msgspec.Struct, frozen=True):
    pod: Pod
    """With its spec only."""
    amounts: Amounts
    ports: tuple[Port, ...]


class DemandCache:
    """By the identity of the spec object, so a lookup costs nothing. Nobody changes a stored spec."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: OrderedDict[int, tuple[Object, SpecDemand]] = OrderedDict()

    def of_pod(self, pod: Object) -> SpecDemand:
        """The demand of its spec, without the extended resources that devices serve."""
        demand, extended = self.of(pod["spec"]), pod.get("status", {}).get("extendedResourceClaimStatus")
        if extended is None:
            return demand
        served = served_by_devices(msgspec.convert(extended, PodExtendedResourceClaimStatus))
        left = {name: amount for name, amount in demand.amounts.items() if name not in served}
        return msgspec.structs.replace(demand, amounts=left)

    def of(self, spec: Object) -> SpecDemand:
        known = self._known.get(id(spec))
        if known is not None:
            return known[1]  # we hold it, so no other object has its id
        pod = msgspec.convert({"spec": spec}, Pod)
        made = SpecDemand(pod, amounts_of(pod), ports_of(pod))
        self._known[id(spec)] = (spec, made)
        if len(self._known) > MOST:
            self._known.popitem(last=False)
        return made
