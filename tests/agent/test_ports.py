"""Ports of containers that share the machine's."""

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.world import container, pod
from situate.agent import ports
from situate.agent.ports import assign_ports, first_port_of, free_port, known_ports, port_variables, ports_by_name


def asking(*free: int) -> tuple[list[int], Callable[[int], int]]:
    """Somebody who has these ports, and what it was asked for."""
    asked, left = list[int](), list(free)

    def give(number: int) -> int:
        asked.append(number)
        return number or left.pop(0)

    return asked, give


def with_ports(*numbers: Any) -> dict[str, Any]:
    return pod(container("c", ports=[one if isinstance(one, dict) else {"containerPort": one} for one in numbers]))


def test_a_port_that_is_free_is_given_and_another_instead_of_one_that_is_taken() -> None:
    asked, give = asking(40_001)
    assert assign_ports(with_ports(80, 81), {81}, give) == {"c": {"80": 80, "81": 40_001}}
    assert asked == [80, 0]


def test_a_port_that_was_given_meanwhile_is_not_given_again() -> None:
    asked, give = asking(40_001, 40_002)
    taken = {80, 40_001}
    assert assign_ports(with_ports(80), taken, give) == {"c": {"80": 40_002}}
    assert asked == [0, 0]
    assert taken == {80, 40_001, 40_002}


def test_two_containers_of_a_pod_do_not_get_the_same_port() -> None:
    _, give = asking(40_001)
    given = pod(container("c", ports=[{"containerPort": 80}]), container("d", ports=[{"containerPort": 80}]))
    assert assign_ports(given, set(), give) == {"c": {"80": 80}, "d": {"80": 40_001}}


def test_a_host_port_is_kept_even_if_it_is_taken() -> None:
    asked, give = asking()
    given = with_ports({"containerPort": 80, "hostPort": 8_080})
    assert assign_ports(given, {8_080}, give) == {"c": {"80": 8_080}}
    assert asked == []


def test_a_port_on_which_somebody_listens_is_replaced() -> None:
    with socket.socket() as server:
        server.bind(("", 0))
        server.listen()
        number = server.getsockname()[1]
        found = free_port(number)
        assert found not in (0, number)
    assert free_port(number) == number, "nobody does any more"


def test_the_lowest_port_that_a_user_may_have_is_given() -> None:
    number = free_port(0)
    assert free_port(number, number) == number
    assert free_port(number, number + 1) != number


def test_the_first_port_of_a_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = tmp_path / "start"
    monkeypatch.setattr(ports, "FIRST_PORT", said)
    assert first_port_of(1) == 1_024, "as it is by default"
    said.write_text("80\n")
    assert (first_port_of(1), first_port_of(0)) == (80, 0)


def test_variables_and_names_lead_to_the_assigned_port() -> None:
    spec = container(ports=[{"containerPort": 80, "name": "web-ui"}, {"containerPort": 81}, {"containerPort": 82}])
    given = {"c": {"80": 40_080, "81": 40_081}}
    variables = {"SITUATE_PORT_WEB_UI": "40080", "SITUATE_PORT_81": "40081", "SITUATE_PORT_82": "82"}
    assert port_variables(spec, given) == variables
    assert ports_by_name(spec, given) == {80: 40_080, "web-ui": 40_080, 81: 40_081, 82: 82}


@pytest.mark.parametrize("text, found", [(None, None), ("{", None), ('{"c": {"80": 1}}', {"c": {"80": 1}})])
def test_ports_that_were_assigned_before_are_known(text: str | None, found: Any, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "ports").write_text(text)
    assert known_ports(tmp_path / "ports") == found
