"""Money in the reports of `situate place`: there where prices are configured, and nowhere else."""

import json
from pathlib import Path

from click.testing import CliRunner

from situate.cli import main
from situate.cli.output.money import before_and_after
from situate.core.plugins.support.prices import NodeCost

EXAMPLES = Path(__file__).parents[3] / "examples" / "policies"
OBJECTS = ["-f", str(EXAMPLES / "cluster.yaml"), "-f", str(EXAMPLES / "workload.yaml")]


def place(*arguments: str) -> str:
    return CliRunner().invoke(main, ["place", *OBJECTS, *arguments], catch_exceptions=False).stdout


def test_the_last_line_says_what_nodes_cost_now_and_before() -> None:
    assert place("--config", str(EXAMPLES / "together.yaml")).splitlines()[-1] == (
        "1.214 USD an hour for 4 nodes in use; before, 0.768 for 2: 0.446 more"
    )


def test_without_prices_there_is_no_word_of_money() -> None:
    assert "an hour" not in place()
    assert json.loads(place("-o", "json"))["summary"]["money"] is None


def test_programs_are_told_both_sums_as_text() -> None:
    said = json.loads(place("--config", str(EXAMPLES / "together.yaml"), "-o", "json"))
    assert said["summary"]["money"] == {
        "before": {"currency": "USD", "anHour": "0.768", "nodes": 2, "unpriced": 0},
        "after": {"currency": "USD", "anHour": "1.214", "nodes": 4, "unpriced": 0},
    }


def test_less_and_the_same_are_told_from_more() -> None:
    one, two = NodeCost("USD", 1_000_000, 1, 0), NodeCost("USD", 2_500_000, 2, 1)
    assert before_and_after(two, one).endswith("before, 2.50 for 2: 1.50 less")
    assert before_and_after(one, one).endswith("before, 1.00 for 1: unchanged")
    assert before_and_after(one, two) == (
        "2.50 USD an hour for 2 nodes in use, 1 of them without a price; before, 1.00 for 1: 1.50 more"
    )
