"""A queue in which flows take turns: a flow with a thousand items delays another one by one item, not by a thousand."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """The items of a flow keep their order."""

    __slots__ = ("_flows",)

    def __init__(self) -> None:
        self._flows: OrderedDict[str, deque[T]] = OrderedDict()
        """Flows with items; the first one is next."""

    def __bool__(self) -> bool:
        return bool(self._flows)

    def push(self, flow: str, item: T) -> None:
        items = self._flows.get(flow)
        if items is None:
            items = self._flows[flow] = deque()
        items.append(item)

    def pop(self, may_run: Callable[[str], bool] = lambda _flow: True) -> tuple[str, T] | None:
        """The next item of the next flow that may run; None: there is none."""
        for _ in range(len(self._flows)):
            flow, items = next(iter(self._flows.items()))
            if may_run(flow):
                item = items.popleft()
                if items:
                    self._flows.move_to_end(flow)
                else:
                    del self._flows[flow]
                return flow, item
            self._flows.move_to_end(flow)
        return None
