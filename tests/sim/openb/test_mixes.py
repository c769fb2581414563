"""Mixes derived from a trace: each is what its name says, and the same each time."""

import pytest

from situate.sim.openb.mixes import MIXES, mix_of
from situate.sim.openb.trace_files import TraceNode, TracePod, TraceRequest

NODES = (
    *(TraceNode(f"a{at}", 96_000, 393_216, 8, "G2") for at in range(3)),
    TraceNode("b", 104_000, 524_288, 2, "T4"),
)
ASKS = (
    *[TraceRequest(3_000, 1_024, 1, 810)] * 40,
    *[TraceRequest(11_000, 1_024, 1, 1_000)] * 40,
    *[TraceRequest(64_000, 1_024, 8, 1_000)] * 2,
    *[TraceRequest(12_000, 1_024, 0, 0)] * 18,
)
TRACE = tuple(TracePod(f"p{at}", ask) for at, ask in enumerate(ASKS * 5))


def asks(name: str) -> list[TraceRequest]:
    derived = mix_of(name, NODES, TRACE)
    assert derived is not None
    assert len({pod.name for pod in derived}) == len(TRACE)
    return [pod.ask for pod in derived]


def part(name: str, *, gpus: int) -> float:
    found = asks(name)
    return sum(ask.gpus == gpus for ask in found) / len(found)


@pytest.mark.parametrize("name", [*MIXES, "random-0", "random-1"])
def test_a_mix_is_the_same_each_time_and_not_the_trace(name: str) -> None:
    assert asks(name) == asks(name)
    assert asks(name) != [pod.ask for pod in TRACE]


def test_random_mixes_differ_by_their_number() -> None:
    assert asks("random-1") != asks("random-2")
    assert mix_of("random-", NODES, TRACE) is None


def test_each_mix_is_what_its_name_says() -> None:
    assert part("cpu-pods", gpus=0) > 0.2
    assert part("bimodal", gpus=8) > 0.05
    assert all(ask.gpus == 8 or ask.demand < 1_000 for ask in asks("bimodal"))
    eights = [ask.demand for ask in asks("whole-nodes") if ask.gpus == 8]
    assert 2 * sum(eights) > sum(ask.demand for ask in asks("whole-nodes"))
    shares = [ask for ask in asks("small-shares") if 0 < ask.demand <= 500]
    assert len(shares) > 0.8 * len(TRACE)
    assert 2 * sum(ask.milli_cpu for ask in asks("cpu-per-gpu") if ask.gpus) > 2.4 * sum(
        pod.ask.milli_cpu for pod in TRACE if pod.ask.gpus
    )
    models = [ask.models for ask in asks("models") if ask.models]
    assert 0.2 * len(TRACE) < len(models) < 0.4 * len(TRACE)
    assert {("G2",), ("T4",)} == set(models)


def test_a_pod_is_restricted_to_a_model_only_where_it_fits() -> None:
    assert all("T4" not in ask.models for ask in asks("models") if ask.gpus == 8)
