"""Effects in flight: objects that are created together count by their number."""

import asyncio
from collections.abc import Sequence

from situate.core.reconcile.effects import CreateObject, Effect, ObjectRef
from situate.loop.controllers.performing import ALONE, EFFECTS, GUARANTEED, TOGETHER, EffectPerformer
from situate.loop.controllers.port import WriteResult


def creates(namespace: str, count: int) -> list[CreateObject]:
    return [CreateObject(ObjectRef("v1", "Pod", namespace, f"p{number}"), {}) for number in range(count)]


class HeldPort:
    """Holds all creates until they are released, and counts those in flight."""

    def __init__(self) -> None:
        self.held: list[tuple[int, asyncio.Event]] = []
        self.most = 0
        self.created = 0

    @property
    def in_flight(self) -> int:
        return sum(count for count, _ in self.held)

    async def create_each(self, effects: Sequence[CreateObject]) -> Sequence[WriteResult | Exception]:
        entry = (len(effects), asyncio.Event())
        self.held.append(entry)
        self.most = max(self.most, self.in_flight)
        await entry[1].wait()
        self.held.remove(entry)
        self.created += len(effects)
        return [WriteResult(one.ref, self.created) for one in effects]

    async def perform(self, effect: Effect) -> WriteResult | None:
        assert isinstance(effect, CreateObject)
        [made] = await self.create_each([effect])
        assert isinstance(made, WriteResult)
        return made

    async def is_gone(self, ref: ObjectRef) -> bool:
        raise AssertionError(ref)


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_a_thousand_creates_of_one_namespace_are_not_in_flight_at_once() -> None:
    async def story() -> None:
        port = HeldPort()
        performer = EffectPerformer(port, port)
        busy = asyncio.create_task(performer.perform("big", creates("big", 1_000)))
        while not busy.done():
            await settle()
            for _, released in port.held:
                released.set()
        assert (len(await busy), port.created) == (1_000, 1_000)
        assert EFFECTS + TOGETHER < port.most < ALONE + TOGETHER

    asyncio.run(story())


def test_another_namespace_has_its_effects_in_flight_beside_them() -> None:
    async def story() -> None:
        port = HeldPort()
        performer = EffectPerformer(port, port)
        busy = asyncio.create_task(performer.perform("big", creates("big", 1_000)))
        await settle()
        before = port.in_flight
        small = asyncio.create_task(performer.perform("small", creates("small", GUARANTEED)))
        await settle()
        assert port.in_flight == before + GUARANTEED
        port.held[-1][1].set()
        await settle()
        assert small.done()
        busy.cancel()
        await asyncio.gather(busy, return_exceptions=True)

    asyncio.run(story())


def test_two_namespaces_have_fewer_in_flight_than_one_alone() -> None:
    async def story() -> None:
        port = HeldPort()
        performer = EffectPerformer(port, port)
        busy = [asyncio.create_task(performer.perform(name, creates(name, 1_000))) for name in ("one", "other")]
        await settle()
        for _ in range(10):  # what the first one had in flight before the other came
            port.held[0][1].set()
            await settle()
        port.most = 0
        for _ in range(20):
            port.held[0][1].set()
            await settle()
        assert 0 < port.most < EFFECTS + TOGETHER
        for one in busy:
            one.cancel()
        await asyncio.gather(*busy, return_exceptions=True)

    asyncio.run(story())


def test_answers_of_creates_in_several_parts_are_in_their_order() -> None:
    async def story() -> None:
        port = HeldPort()
        wanted = creates("big", TOGETHER + 1)
        busy = asyncio.create_task(EffectPerformer(port, port).perform("big", wanted))
        await settle()
        for _, released in reversed(port.held):
            released.set()
            await settle()
        answers = await busy
        assert [one.ref for one in answers if isinstance(one, WriteResult)] == [one.ref for one in wanted]

    asyncio.run(story())
