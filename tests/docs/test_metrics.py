"""docs/reference/metrics.md has every metric, with its type, labels and meaning; no page names another."""

import re
from pathlib import Path
from typing import Any, cast

import pytest

from situate.cli.control_plane.process import GAUGES
from situate.loop.controllers.metrics import ERRORS, SLOW_CALLS, ControllerMetrics
from situate.loop.metrics import Metrics
from situate.loop.metrics_table import FAMILIES, Family
from situate.loop.supervisor import RESTARTS, Supervisor
from situate.server.admission.webhooks.metrics import WebhookMetrics
from situate.server.apiextensions.conversion_metrics import ConversionMetrics
from situate.server.http.metrics import RequestMetrics
from situate.server.placing.snapshot_lag import SnapshotLag

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "reference" / "metrics.md").read_text()
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
LAG = SnapshotLag(cast(Any, None)).metrics
"""What it measures is not asked for."""
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
        f"{metric.name}_total" if metric.type == "counter" else metric.name
        for metric in (
            *Metrics().registry.collect(),
            *RequestMetrics().collect(),
            *LAG.collect(),
            *Supervisor([]).metrics.collect(),
            *ControllerMetrics().metrics.collect(),
            *WebhookMetrics().registry.collect(),
            *ConversionMetrics().registry.collect(),
        )
    }
    assert set(ROWS) == shown | set(GAUGES)


def test_a_gauge_of_the_control_plane_stands_there_as_it_is() -> None:
    assert {name: ROWS[name][-1] for name in GAUGES} == GAUGES


def test_every_row_says_what_the_metric_means() -> None:
    assert [name for name, cells in ROWS.items() if len(cells[-1]) < 10] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_names_only_metrics_that_there_are(page: Path) -> None:
    named = re.findall(r"`((?:scheduler|situate|rest_client|leader_election)_[a-z_]+)\b", page.read_text())
    assert set(named) - set(ROWS) == set()


@pytest.mark.parametrize("family", [RESTARTS, ERRORS, SLOW_CALLS], ids=lambda family: family.name)
def test_the_page_has_the_metrics_of_the_parts_in_their_own_words(family: Family) -> None:
    assert ROWS[family.name] == [family.kind, f"`{family.labels[0]}`", family.help]
