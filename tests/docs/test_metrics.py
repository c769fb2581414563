"""docs/METRICS.md has every metric that there is, with its type, labels and meaning, and none that there is not."""

import re
from pathlib import Path

import pytest

from situate.loop.metrics import Metrics
from situate.loop.metrics_table import FAMILIES, Family

PAGE = (Path(__file__).parent.parent.parent / "docs" / "METRICS.md").read_text()
ROWS = {
    cells[0].strip("`"): cells[1:]
    for line in PAGE.splitlines()
    if (cells := [cell.strip() for cell in line.strip("|").split("|")]) and re.fullmatch(r"`[a-z_]+`", cells[0])
}


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: f"{family.name} is explained")
def test_a_metric_stands_there_as_it_is(family: Family) -> None:
    kind, *_, labels, meaning = ROWS[family.name]
    assert (kind, tuple(re.findall(r"`(\w+)`", labels)), meaning) == (family.kind, family.labels, family.help)


def test_the_page_has_what_is_shown_and_nothing_else() -> None:
    shown = {
        f"{metric.name}_total" if metric.type == "counter" else metric.name for metric in Metrics().registry.collect()
    }
    assert set(ROWS) == shown


def test_every_row_says_what_the_metric_means() -> None:
    assert [name for name, cells in ROWS.items() if len(cells[-1]) < 10] == []
