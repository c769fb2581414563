"""Performs the effects of controllers through a port, within limits: namespaces take turns."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, TypeAlias, TypeGuard

from situate.core.reconcile.effects import CreateObject, Effect
from situate.loop.controllers.port import BatchingPort, ControllerPort, WriteResult
from situate.loop.fair_slots import FairSlots, SlotLimits

EFFECTS: Final = 32
"""How many effects may be in flight at once, of all controllers. Namespaces take turns."""
ALONE: Final = 256
"""How many, while only one namespace has any: as many as keep the store busy."""
GUARANTEED: Final = 8
"""How many effects of one namespace may be in flight, whatever others do."""
QUEUED: Final = 2_048
"""How many effects of one namespace may wait: as many as all its controllers ask for at once."""
TOGETHER: Final = 32
"""How many objects are created together, at most: a few milliseconds of work, for which other namespaces wait. Each
of them counts as an effect in flight."""

Answer: TypeAlias = WriteResult | BaseException | None
"""What was written, or why not; None for an event."""


class EffectPerformer:
    def __init__(self, port: ControllerPort, batching: BatchingPort | None = None) -> None:
        """`batching`: the port, if it creates several objects at once."""
        self._port = port
        self._batching = batching
        self._slots = FairSlots(SlotLimits(EFFECTS, ALONE, QUEUED, ALONE, GUARANTEED, ALONE))

    async def perform(self, flow: str, effects: Sequence[Effect]) -> Sequence[Answer]:
        """Perform these concurrently, in the turn of a namespace. The answers are in their order."""
        if self._batching is not None and len(effects) > 1 and _are_creates(effects):
            parts = [effects[start : start + TOGETHER] for start in range(0, len(effects), TOGETHER)]
            made = await asyncio.gather(*(self._create_in_turn(flow, part, self._batching) for part in parts))
            return [answer for part in made for answer in part]
        return await asyncio.gather(*(self._in_turn(flow, effect) for effect in effects), return_exceptions=True)

    async def _create_in_turn(
        self, flow: str, effects: Sequence[CreateObject], batching: BatchingPort
    ) -> Sequence[Answer]:
        try:
            async with self._slots.slot(flow, len(effects)):
                return await batching.create_each(effects)
        except Exception as error:  # noqa: BLE001 - the answer for each of them
            return [error] * len(effects)

    async def _in_turn(self, flow: str, effect: Effect) -> WriteResult | None:
        async with self._slots.slot(flow):
            return await self._port.perform(effect)


def _are_creates(effects: Sequence[Effect]) -> TypeGuard[Sequence[CreateObject]]:
    return all(isinstance(one, CreateObject) for one in effects)
