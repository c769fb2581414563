"""Sums of what is on a node: exact, and the same there and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import container, node, pod
from situate.core.model.base import EMPTY
from situate.core.model.ledger import (
    Amounts,
    Ledger,
    LedgerError,
    LedgerPod,
    Short,
    add,
    allocatable_of,
    amount_of,
    amounts_of,
    ports_of,
    quantity,
    remove,
    room,
    taken_ports,
)
from situate.core.model.pod import ContainerPort
from situate.server.placing.snapshots import SnapshotMetadata, decoded, encoded

RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods", "example.com/gpu")
amounts = st.dictionaries(st.sampled_from(RESOURCES), st.integers(1, 2**62))


def bound(number: int, *ports: str) -> LedgerPod:
    return LedgerPod("default", f"p{number}", f"uid-{number}", 1, ports)


def test_a_pod_takes_what_its_containers_ask_for_and_one_place_among_pods() -> None:
    asked = pod(containers=(container("a", cpu="250m", memory="1Gi"), container("b", requests={"example.com/gpu": 2})))
    assert amounts_of(asked) == {"pods": 1, "cpu": 250, "memory": 1 << 30, "example.com/gpu": 2}


def test_a_pod_that_asks_for_nothing_takes_one_place_among_pods() -> None:
    assert amounts_of(pod()) == {"pods": 1}


def test_a_node_gives_what_is_allocatable() -> None:
    found = allocatable_of(node(cpu="1500m", memory="1Ki", pods="3", allocatable={"example.com/gpu": "4"}))
    assert found == {"cpu": 1500, "memory": 1024, "ephemeral-storage": 0, "pods": 3, "example.com/gpu": 4}


def test_what_is_short_is_told_with_what_was_asked_what_is_free_and_what_there_is() -> None:
    short = room({"cpu": 4000, "pods": 10}, {"cpu": 3900, "pods": 2}, {"cpu": 250, "pods": 1})
    assert short == [Short("cpu", 250, 100, 4000)]
    assert str(short[0]) == "cpu: asked 250m, free 100m, allocatable 4"


def test_a_resource_that_a_node_does_not_have_is_short() -> None:
    assert room({"cpu": 1}, {}, {"example.com/gpu": 1}) == [Short("example.com/gpu", 1, 0, 0)]


def test_who_asks_for_nothing_of_a_resource_fits_even_where_it_is_overfull() -> None:
    assert room({"cpu": 100, "pods": 9}, {"cpu": 200, "pods": 1}, {"pods": 1}) == []


@given(amounts, amounts, amounts)
def test_room_is_there_if_and_only_if_every_sum_stays_within(has: Amounts, held: Amounts, asked: Amounts) -> None:
    fits = all(held.get(one, 0) + amount <= has.get(one, 0) for one, amount in asked.items())
    assert (room(has, held, asked) == []) is fits


@given(st.lists(amounts, max_size=6), st.randoms(use_true_random=False))
def test_taking_everybody_off_in_any_order_leaves_nothing(asked: list[Amounts], order: object) -> None:
    ledger = Ledger()
    for number, one in enumerate(asked):
        ledger = add(ledger, bound(number), one)
    assert ledger.allocated == {name: total for name in RESOURCES if (total := sum(one.get(name, 0) for one in asked))}
    numbers = list(range(len(asked)))
    order.shuffle(numbers)  # type: ignore[attr-defined]
    for number in numbers:
        ledger = remove(ledger, f"uid-{number}", asked[number])
    assert ledger == Ledger((), EMPTY)


@given(st.lists(amounts, max_size=4))
def test_a_ledger_that_is_stored_and_read_is_the_same_one(asked: list[Amounts]) -> None:
    ledger = Ledger()
    for number, one in enumerate(asked):
        ledger = add(ledger, bound(number, "TCP/80", "UDP/53/10.0.0.1"), one)
    identity = SnapshotMetadata("n1", "uid-n1", "2026-01-01T00:00:00Z")
    value = encoded(identity, ledger)
    assert value.startswith(b'{"metadata":{"name":"n1"')
    assert decoded(value) == (identity, ledger)


def test_taking_off_who_is_not_there_is_a_fault() -> None:
    with pytest.raises(LedgerError, match="0 times on the ledger"):
        remove(Ledger(), "uid-1", {"pods": 1})


def test_taking_off_more_than_is_there_is_a_fault() -> None:
    with pytest.raises(LedgerError, match="1 less cpu"):
        remove(add(Ledger(), bound(1), {"cpu": 1}), "uid-1", {"cpu": 2})


@given(st.sampled_from(RESOURCES), st.integers(0, 2**53))
def test_a_quantity_reads_back_as_the_amount_it_was_written_from(resource: str, amount: int) -> None:
    assert amount_of(resource, quantity(resource, amount)) == amount


@pytest.mark.parametrize(
    "wanted, held, clash",
    [
        pytest.param("TCP/80", "TCP/80", True, id="the same port clashes"),
        pytest.param("TCP/80", "TCP/8080", False, id="a longer number is another port"),
        pytest.param("TCP/80", "UDP/80", False, id="another protocol does not clash"),
        pytest.param("TCP/80/10.0.0.1", "TCP/80/10.0.0.2", False, id="two addresses do not clash"),
        pytest.param("TCP/80/10.0.0.1", "TCP/80", True, id="every address clashes with one"),
        pytest.param("TCP/80", "TCP/80/10.0.0.1", True, id="one address clashes with every"),
    ],
)
def test_host_ports_clash_on_one_protocol_and_a_shared_address(wanted: str, held: str, clash: bool) -> None:
    ledger = add(Ledger(), bound(1, held), {"pods": 1})
    assert bool(taken_ports(ledger, (wanted,))) is clash


def test_host_ports_are_those_of_containers_and_sidecars() -> None:
    def at(name: str, port: int, **fields: str) -> object:
        return container(name, ports=(ContainerPort(container_port=1, host_port=port, **fields),))

    sidecar = container("s", restart_policy="Always", ports=(ContainerPort(host_port=3, protocol="UDP"),))
    asked = pod(containers=(at("a", 1), at("b", 2, host_ip="10.0.0.1")), init_containers=(at("i", 9), sidecar))
    assert ports_of(asked) == ("TCP/1", "TCP/2/10.0.0.1", "UDP/3")


def test_local_storage_counts_too() -> None:
    asked = pod(containers=(container("a", requests={"ephemeral-storage": "2Ki"}),))
    assert amounts_of(asked) == {"pods": 1, "ephemeral-storage": 2048}
    assert allocatable_of(node(allocatable={"ephemeral-storage": "4Ki"}))["ephemeral-storage"] == 4096
