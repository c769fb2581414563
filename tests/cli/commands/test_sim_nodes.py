"""`situate sim --nodes`: what it prints of worlds with agents and a control plane."""

import logging

import pytest
from click.testing import CliRunner, Result

from situate.cli import main
from situate.sim.nodes import faults, world
from situate.sim.nodes.checkers import NodeCheckers


def sim(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["sim", "--nodes", *arguments])


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Worlds in which nothing goes wrong, and not for long."""
    for module in (faults, world):
        monkeypatch.setattr(module, "KINDS", ())


def test_a_world_prints_its_digest_and_what_was_seen(short: None) -> None:
    result = sim("--seed", "6")
    assert result.exit_code == 0, result.output
    first, last = result.output.splitlines()
    assert first.startswith("seed 6: ")
    assert last.startswith("1 worlds, ")
    assert last.endswith(", 0 violations")
    assert logging.root.manager.disable == logging.NOTSET


def test_a_violation_is_printed_with_what_happened_before_and_how_to_see_it_again(
    short: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def began(self: NodeCheckers, node: str, uid: str) -> None:
        self._log.violation("it runs twice")

    monkeypatch.setattr(NodeCheckers, "began", began)
    result = sim("--seeds", "6..6")
    assert result.exit_code == 1
    assert "seed 6, it runs twice  (situate sim --nodes --seed 6 --trace)" in result.output
    assert "node n0 is ready" in result.output
    assert result.output.splitlines()[-1].endswith("violations")


def test_a_trace_has_all_that_happens(short: None) -> None:
    lines = sim("--seed", "6", "--trace").output.splitlines()
    assert any("is bound to" in line for line in lines)
    assert any("all is settled" in line for line in lines)


def test_steps_are_of_the_other_worlds() -> None:
    result = sim("--seed", "6", "--steps", "5")
    assert result.exit_code == 2
    assert "--steps is for the scheduler's worlds" in result.output
