"""NodePorts: refuse nodes where a host port that the pod asks for is taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from situate.core.contract import FITS, Codes, Reason, Wake, WakeEvent
from situate.core.state.classes import PodClass
from situate.core.state.holders import port_holders
from situate.core.state.ports import EVERY_ADDRESS, conflicts
from situate.core.state.view import View

TAKEN: Final = 1


@dataclass(frozen=True, slots=True)
class NodePorts:
    """Ports clash on one protocol, if they share an address or one of them is for every address."""

    name: ClassVar[str] = "NodePorts"
    reasons: ClassVar[tuple[Reason, ...]] = (
        Reason("node(s) didn't have free ports for the requested pod ports", eviction_helps=True),
    )
    wakes_on: ClassVar[frozenset[Wake]] = frozenset({Wake.POD_DELETED, Wake.NODE_ADDED})

    def wakes(self, pod: PodClass, event: WakeEvent) -> bool:
        """Any new node helps; a pod that leaves helps if it held a port that the pod requests."""
        if event.kind is not Wake.POD_DELETED or event.pod is None:
            return True
        return bool(event.node_name) and any(
            (held.protocol, held.port) == (port.protocol, port.port) and conflicts(port.ip, (held.ip,))
            for held in event.pod.host_ports
            for port in pod.host_ports
        )

    def check(self, pod: PodClass, view: View) -> Codes | None:
        if not pod.host_ports:
            return None
        codes = np.zeros(view.size, np.uint8)
        for port in pod.host_ports:
            holders = port_holders(view, port)
            if port.ip == EVERY_ADDRESS:
                codes[np.fromiter(holders, np.intp, len(holders))] = TAKEN
                continue
            for row, addresses in holders.items():
                if conflicts(port.ip, addresses):
                    codes[row] = TAKEN
        return codes

    def check_at(self, pod: PodClass, view: View, row: int) -> int:
        for port in pod.host_ports:
            if conflicts(port.ip, port_holders(view, port).get(row, ())):
                return TAKEN
        return FITS
