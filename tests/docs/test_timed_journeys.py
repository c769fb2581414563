"""The journeys that are timed are those of the pages."""

from pathlib import Path

import pytest

from docs.journeys import JOURNEYS, KINDS, JourneyError, cpu_of, follow, until_the_reason
from docs.test_tutorials import ROOT, Shell, Step


def test_the_first_ends_with_the_reason_and_the_pages_show_how_a_dump_is_made() -> None:
    path = until_the_reason()
    assert path[0].line.startswith("situate up")
    assert [step.line for step in path if step.line.startswith("situate why")] == [path[-1].line]
    assert KINDS in (ROOT / "docs" / "guides" / "copy.md").read_text()


def test_the_pages_name_every_journey_and_its_limit() -> None:
    index = (ROOT / "docs" / "start" / "index.md").read_text()
    for journey in JOURNEYS:
        assert journey.name in index
        assert f"{journey.within_s / 60:.0f} min" in index


def test_time_and_cpu_are_measured_and_a_command_that_fails_ends_the_journey(tmp_path: Path) -> None:
    with Shell(tmp_path) as shell:
        assert follow(shell, [Step("for i in $(seq 200); do /bin/true; done"), Step("cat nothing  # exit 1")]) > 0
        assert cpu_of(shell) > 0
        with pytest.raises(JourneyError, match="cat nothing"):
            follow(shell, [Step("cat nothing")])
