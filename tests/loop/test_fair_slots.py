import asyncio

import pytest

from server.http.world import told
from situate.loop.fair_slots import FairSlots, QueueFullError, SlotLimits


async def served(slots: FairSlots, wanted: list[str]) -> list[str]:
    """The flows in the order in which they get the one slot."""
    order: list[str] = []

    async def one(flow: str) -> None:
        waiting = slots.enter(flow)
        if waiting is not None:
            await waiting
        order.append(flow)
        await asyncio.sleep(0)
        slots.leave(flow)

    async with asyncio.TaskGroup() as tasks:
        for flow in wanted:
            tasks.create_task(one(flow))
    return order


def test_flows_take_turns_however_many_requests_one_of_them_has() -> None:
    async def story() -> None:
        slots = FairSlots(SlotLimits(slots=1, per_flow=1, queue=100, turn=100))
        order = await served(slots, ["greedy"] * 20 + ["alice", "bob"])
        assert order[:4] == ["greedy", "greedy", "alice", "bob"]
        assert len(order) == 22
        assert (slots.running, slots.waiting) == (0, 0)

    told(story)


def test_a_flow_has_no_more_than_its_own_slots_and_the_rest_are_for_others() -> None:
    async def story() -> None:
        slots = FairSlots(SlotLimits(slots=4, per_flow=2, queue=100, turn=100))
        assert [slots.enter("greedy") is None for _ in range(3)] == [True, True, False]
        assert slots.enter("alice") is None
        assert (slots.running, slots.waiting) == (3, 1)

    told(story)


def test_a_flow_starts_a_few_requests_in_a_turn_of_the_loop_and_the_rest_in_the_next_ones() -> None:
    async def story() -> None:
        slots = FairSlots(SlotLimits(slots=100, per_flow=100, queue=100, turn=2))
        waiting = []
        for _ in range(6):
            future = slots.enter("greedy")  # each has ended before the next one comes
            if future is None:
                slots.leave("greedy")
            else:
                waiting.append(future)
        assert slots.enter("alice") is None
        assert len(waiting) == 4
        for done in (2, 4):
            await asyncio.sleep(0)
            assert sum(future.done() for future in waiting) == done

    told(story)


def test_a_full_queue_is_the_flows_own() -> None:
    async def story() -> None:
        slots = FairSlots(SlotLimits(slots=1, per_flow=1, queue=2, turn=100))
        assert slots.enter("greedy") is None
        for _ in range(2):
            assert slots.enter("greedy") is not None
        with pytest.raises(QueueFullError):
            slots.enter("greedy")
        assert slots.enter("alice") is not None

    told(story)


def test_a_request_that_gives_up_waiting_does_not_delay_the_others() -> None:
    async def story() -> None:
        slots = FairSlots(SlotLimits(slots=1, per_flow=1, queue=2, turn=100))
        assert slots.enter("alice") is None
        gone, next_one = slots.enter("bob"), slots.enter("carol")
        assert gone is not None
        assert next_one is not None
        gone.cancel()
        slots.leave("alice")
        assert next_one.done()
        slots.leave("carol")
        assert (slots.running, slots.waiting) == (0, 0)

    told(story)


def test_nothing_is_remembered_of_flows_that_have_gone() -> None:
    async def story() -> None:
        slots = FairSlots(SlotLimits(slots=10, per_flow=10, queue=2, turn=100))
        for number in range(1000):
            assert slots.enter(f"user-{number}") is None
            slots.leave(f"user-{number}")
        await asyncio.sleep(0)
        assert not slots._flows

    told(story)


def test_a_flow_has_its_guaranteed_slots_when_all_are_taken() -> None:
    async def story() -> None:
        slots = FairSlots(SlotLimits(slots=2, per_flow=9, queue=100, turn=100, guaranteed=1))
        assert [slots.enter("greedy") is None for _ in range(3)] == [True, True, False]
        assert [slots.enter("alice") is None for _ in range(2)] == [True, False]
        slots.leave("alice")
        await asyncio.sleep(0)
        assert slots.enter("alice") is not None, "her own is taken by the one that waited"

    told(story)


def test_a_flow_has_more_slots_while_it_is_alone() -> None:
    async def story() -> None:
        slots = FairSlots(SlotLimits(slots=2, per_flow=100, queue=100, turn=100, alone=4))
        waiting = [slots.enter("busy") for _ in range(6)]
        assert [one is None for one in waiting] == [True] * 4 + [False] * 2
        slots.leave("busy")
        assert waiting[4] is not None
        assert waiting[4].done(), "it is still alone"
        other = slots.enter("alice")
        assert other is not None, "all slots are taken"
        assert waiting[5] is not None
        seen = []
        for _ in range(4):
            slots.leave("busy")
            seen.append((slots.running, waiting[5].done(), other.done()))
        assert seen == [(3, False, False), (2, False, False), (2, True, False), (2, True, True)], "they share two now"

    told(story)


@pytest.mark.parametrize("granted", [False, True], ids=["while it waits", "just after it got its slot"])
def test_a_cancelled_holder_leaves_its_slot(granted: bool) -> None:
    async def story() -> None:
        slots = FairSlots(SlotLimits(slots=1, per_flow=1, queue=100, turn=100))

        async def hold() -> None:
            async with slots.slot("alice"):
                raise AssertionError("it was cancelled")

        assert slots.enter("greedy") is None
        waiting = asyncio.create_task(hold())
        await asyncio.sleep(0)
        if granted:
            slots.leave("greedy")
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert waiting.cancelled()
        if not granted:
            slots.leave("greedy")
        async with asyncio.timeout(1), slots.slot("bob"):
            assert slots.running == 1
        assert slots.running == 0

    told(story)


def test_a_request_takes_as_many_slots_as_it_weighs() -> None:
    async def story() -> None:
        slots = FairSlots(SlotLimits(slots=4, per_flow=100, queue=100, turn=100))
        assert slots.enter("alice", 3) is None
        assert slots.enter("alice", 3) is None, "one slot is free"
        assert slots.running == 6
        waiting = slots.enter("bob", 2)
        assert waiting is not None
        slots.leave("alice", 3)
        assert waiting.done()
        slots.leave("alice", 3)
        slots.leave("bob", 2)
        assert (slots.running, slots.waiting) == (0, 0)

    told(story)


def test_small_requests_do_not_overtake_a_heavy_one_for_ever() -> None:
    async def story() -> None:
        slots = FairSlots(SlotLimits(slots=4, per_flow=100, queue=100, turn=100))
        for _ in range(4):
            assert slots.enter("small") is None
        heavy = slots.enter("big", 4)
        assert heavy is not None
        assert slots.enter("small") is not None
        slots.leave("small")
        assert heavy.done()

    told(story)


def test_a_flow_starts_requests_in_one_turn_by_their_weight() -> None:
    async def story() -> None:
        slots = FairSlots(SlotLimits(slots=100, per_flow=100, queue=100, turn=8))
        assert [slots.enter("greedy", 4) is None for _ in range(3)] == [True, True, False]
        assert slots.enter("alice", 4) is None
        await asyncio.sleep(0)
        assert slots.running == 16

    told(story)


def test_a_cancelled_holder_leaves_all_its_slots() -> None:
    async def story() -> None:
        slots = FairSlots(SlotLimits(slots=4, per_flow=100, queue=100, turn=100))

        async def hold() -> None:
            async with slots.slot("alice", 4):
                await asyncio.sleep(60)

        holding = asyncio.create_task(hold())
        await asyncio.sleep(0)
        assert slots.running == 4
        holding.cancel()
        await asyncio.gather(holding, return_exceptions=True)
        assert slots.running == 0

    told(story)
