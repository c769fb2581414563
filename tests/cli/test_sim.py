"""`situate sim`: what it prints, and what it answers to arguments that make no sense."""

import pytest
from click.testing import CliRunner, Result

from situate.cli import main
from situate.core.engine.cycle import Cycle


def sim(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["sim", *arguments])


def test_a_world_without_violations_prints_its_digest_and_what_was_seen() -> None:
    result = sim("--seed", "3", "--steps", "50")
    assert result.exit_code == 0
    first, last = result.output.splitlines()
    assert first.startswith("seed 3: ")
    assert last.startswith("1 worlds, ")
    assert last.endswith(", 0 violations")


def test_the_same_worlds_print_the_same_with_two_workers() -> None:
    assert (
        sim("--seeds", "1..4", "--steps", "30").output
        == sim("--seeds", "1..4", "--steps", "30", "--workers", "2").output
    )


def test_a_violation_is_a_line_with_the_command_that_does_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cycle, "_bind_done", lambda self, ref, _: self.reservations.pop(ref.key, None))
    result = sim("--seeds", "3..4", "--steps", "200")
    assert result.exit_code == 1
    assert "(situate sim --seed 3 --steps 200)" in result.output.splitlines()[0]
    assert "reservations: " in result.output


def test_a_trace_says_what_was_told_and_asked() -> None:
    lines = sim("--seed", "3", "--steps", "20", "--trace").output.splitlines()
    assert any(" < Node seen n" in line for line in lines)
    assert any(" > " in line for line in lines)


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("--seeds", "5..1"), id="seeds that run backwards"),
        pytest.param(("--seeds", "many"), id="no number"),
        pytest.param(("--seed", "1", "--seeds", "1..2"), id="a seed and seeds"),
        pytest.param(("--trace", "--seeds", "1..2"), id="a trace of several worlds"),
        pytest.param(("--steps", "0"), id="no steps"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments: tuple[str, ...]) -> None:
    result = sim(*arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.output
