"""`situate sim`: what it prints, and what it answers to arguments that make no sense."""

import pytest
from click.testing import CliRunner, Result

from situate.cli import main
from situate.cli.commands import sim as command
from situate.core.engine.binding import BindingCycle


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
    monkeypatch.setattr(BindingCycle, "bind_done", lambda self, ref, _: self._state.reservations.pop(ref.key, None))
    result = sim("--seeds", "3..4", "--steps", "200")
    assert result.exit_code == 1
    assert "(situate sim --seed 3 --steps 200)" in result.output.splitlines()[0]
    assert "reservations: " in result.output


# -- how far it has come ---------------------------------------------------------------------------------------------


class Clock:
    """Says what it is set to."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_run_says_how_far_it_has_come_when_it_has_been_silent_for_long_enough() -> None:
    clock = Clock()
    progress = command.Progress(3_000, clock)
    clock.now += command.PROGRESS_EVERY_S - 1
    assert progress.after(100, 0) is None
    clock.now += 1
    assert progress.after(200, 0) == "200 of 3000 worlds, 0 violations, 7 minutes to go"
    assert progress.after(201, 0) is None
    clock.now += command.PROGRESS_EVERY_S
    assert progress.after(1_500, 2) == "1500 of 3000 worlds, 2 violations, 1 minute to go"


@pytest.mark.parametrize(
    "done, said",
    [
        pytest.param(1_000, "1000 of 3000 worlds, 0 violations, 1 minute to go", id="a minute is left"),
        pytest.param(2_999, "2999 of 3000 worlds, 0 violations, less than a minute to go", id="hardly any is left"),
        pytest.param(3_000, None, id="none is left"),
    ],
)
def test_of_the_time_that_is_left(done: int, said: str | None) -> None:
    clock = Clock()
    progress = command.Progress(3_000, clock)
    clock.now += command.PROGRESS_EVERY_S
    assert progress.after(done, 0) == said


@pytest.mark.parametrize("workers", ["1", "2"])
def test_progress_goes_to_the_standard_error_and_leaves_the_output_as_it_is(
    monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    arguments = ("--seeds", "1..3", "--steps", "20", "--workers", workers)
    silent = sim(*arguments)
    monkeypatch.setattr(command, "PROGRESS_EVERY_S", 0.0)
    told = sim(*arguments)
    assert silent.stderr == ""
    assert [line.partition(" violations, ")[0] for line in told.stderr.splitlines()] == [
        "1 of 3 worlds, 0",
        "2 of 3 worlds, 0",
    ]
    assert told.stdout_bytes == silent.stdout_bytes


# -- arguments -------------------------------------------------------------------------------------------------------


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
