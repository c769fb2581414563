"""The dashboard and the alert rules ask for metrics and labels that situate has, and are as their tools write them."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tools import dashboard

ROOT = Path(__file__).parents[2]
ALERTS = ROOT / "deploy" / "monitoring" / "alerts.yaml"
PAGE = (ROOT / "docs" / "reference" / "metrics.md").read_text()
ROWS = {
    cells[0].strip("`"): cells
    for line in PAGE.splitlines()
    if (cells := [cell.strip() for cell in line.strip("|").split("|")]) and re.fullmatch(r"`[a-z_]+`", cells[0])
}
"""tests/docs/test_metrics.py compares this table with the program."""
OF_PROMETHEUS = {"le", "job", "instance"}
NAME = re.compile(r"\b((?:scheduler|situate|rest_client|leader_election)_[a-z_]+)\b(?:\{([^}]*)\})?")
GROUPED = re.compile(r"by \(([^)]*)\)")


def expressions() -> Iterator[tuple[str, str]]:
    for panel in json.loads(dashboard.FILE.read_text())["panels"]:
        for target in panel.get("targets", ()):
            yield f"the panel {panel['title']}", target["expr"]
    for group in yaml.safe_load(ALERTS.read_text())["groups"]:
        for rule in group["rules"]:
            yield f"the alert {rule['alert']}", rule["expr"]


EXPRESSIONS = list(expressions())


@pytest.mark.parametrize("expression", [pytest.param(expr, id=name) for name, expr in EXPRESSIONS])
def test_it_asks_for_metrics_and_labels_that_there_are(expression: str) -> None:
    asked = NAME.findall(expression)
    labels = {label.strip() for found in GROUPED.findall(expression) for label in found.split(",")}
    known = set(OF_PROMETHEUS)
    assert asked or "up{" in expression
    for name, matchers in asked:
        base = name if name in ROWS else re.sub(r"_(bucket|sum|count)$", "", name)
        kind = ROWS[base][1]
        assert (kind == "histogram") == (base != name), f"{name} is a {kind}"
        assert kind != "counter" or "rate(" in expression or "increase(" in expression, f"{name} only ever grows"
        known |= set(re.findall(r"`(\w+)`", ROWS[base][-2]))
        labels |= set(re.findall(r"(\w+)\s*[=!]", matchers))
    assert labels - known == set()


def test_the_dashboard_is_as_its_tool_writes_it() -> None:
    assert dashboard.FILE.read_text() == dashboard.text()


def test_every_alert_says_what_is_wrong_what_to_do_and_how_bad_it_is() -> None:
    rules = [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules)
    for rule in rules:
        assert set(rule["annotations"]) == {"summary", "description"}
        assert rule["labels"]["severity"] in {"info", "warning", "critical"}


def test_the_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in json.loads(dashboard.FILE.read_text())["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken
        taken |= cells
