"""Host ports in use: counted by port, node and address."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from situate.core.state.classes import HostPort
from situate.core.state.ports import PortTable, conflicts

ports = st.builds(
    HostPort,
    st.sampled_from(["0.0.0.0", "10.0.0.1", "::1"]),
    st.sampled_from(["TCP", "UDP"]),
    st.sampled_from([80, 81]),
)
holders = st.lists(st.tuples(st.integers(0, 2), st.lists(ports, max_size=2)), max_size=8)


@given(holders, st.data())
def test_what_is_left_after_some_have_gone_is_what_the_others_hold(
    coming: list[tuple[int, list[HostPort]]], data: st.DataObject
) -> None:
    table = PortTable()
    for row, taken in coming:
        table.add(row, taken)
    going = data.draw(st.lists(st.sampled_from(range(len(coming))), unique=True)) if coming else []
    for at in going:
        table.remove(*coming[at])
    left = [holder for at, holder in enumerate(coming) if at not in going]
    for port in {port for _, taken in coming for port in taken}:
        expected: dict[int, Counter[str]] = {}
        for row, taken in left:
            for held in taken:
                if (held.protocol, held.port) == (port.protocol, port.port):
                    expected.setdefault(row, Counter())[held.ip] += 1
        assert table.holders(port) == expected
    if not any(taken for _, taken in left):
        assert table.taken == {}


@pytest.mark.parametrize(
    "wanted,taken,clash",
    [
        pytest.param("10.0.0.1", ["10.0.0.1"], True, id="the same address"),
        pytest.param("10.0.0.1", ["10.0.0.2"], False, id="another address"),
        pytest.param("10.0.0.1", ["10.0.0.2", "0.0.0.0"], True, id="somebody has every address"),
        pytest.param("0.0.0.0", ["10.0.0.2"], True, id="every address is wanted"),
        pytest.param("0.0.0.0", [], False, id="nobody has any"),
        pytest.param("::", ["10.0.0.2"], False, id="only 0.0.0.0 is every address"),
    ],
)
def test_an_address_clashes(wanted: str, taken: list[str], clash: bool) -> None:
    assert conflicts(wanted, taken) is clash
