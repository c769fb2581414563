"""What pods ask for, by the spec that they share."""

from typing import Any

from situate.core.model.ledger import Amounts
from situate.server.placing.demands import MOST, DemandCache


def spec(cpu: str = "100m", port: int = 0) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
    if port:
        container["ports"] = [{"containerPort": 80, "hostPort": port}]
    return {"containers": [container]}


def amounts(milli: int) -> Amounts:
    return {"pods": 1, "cpu": milli, "memory": 64 << 20}


def test_what_a_spec_asks_for() -> None:
    found = DemandCache().of(spec("250m", port=8080))
    assert found.amounts == amounts(250)
    assert found.ports == ("TCP/8080",)
    assert found.pod.spec.containers[0].name == "c"


def test_the_very_spec_is_read_once_and_an_equal_one_by_itself() -> None:
    demands, shared = DemandCache(), spec()
    assert demands.of(shared) is demands.of(shared)
    assert demands.of(spec()) is not demands.of(shared)
    assert demands.of(spec()).amounts == demands.of(shared).amounts


def test_one_that_is_forgotten_leaves_nothing_to_whoever_comes_by_its_place_in_memory() -> None:
    demands = DemandCache()
    for number in range(3 * MOST):
        assert demands.of(spec(f"{number + 1}m")).amounts == amounts(number + 1)
    assert len(demands._known) == MOST
