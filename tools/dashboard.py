"""Writes deploy/monitoring/dashboard.json, the dashboard for Grafana, from the table of panels below.

`python -m tools.dashboard`. tests/deploy/test_monitoring.py checks that the file is current, and that every metric and
label is one that situate has.
"""

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).resolve().parent.parent / "deploy" / "monitoring" / "dashboard.json"
COLUMNS, HEIGHT = 3, 8
WIDTH = 24 // COLUMNS
SOURCE = {"type": "prometheus", "uid": "${source}"}

Panel = tuple[str, str, tuple[tuple[str, str], ...]]
"""Title, unit, and what is plotted: expressions with the names of their lines."""


def p99(metric: str, by: str = "") -> str:
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile(0.99, sum by ({labels}) (rate({metric}_bucket[$__rate_interval])))"


def rate(metric: str, by: str) -> str:
    return f"sum by ({by}) (rate({metric}[$__rate_interval]))"


ROWS: tuple[tuple[str, tuple[Panel, ...]], ...] = (
    (
        "Pods",
        (
            ("Pending pods", "short", (("sum by (queue) (scheduler_pending_pods)", "{{queue}}"),)),
            ("What keeps them", "short", (("sum by (plugin) (scheduler_unschedulable_pods)", "{{plugin}}"),)),
            ("Attempts", "ops", ((rate("scheduler_schedule_attempts_total", "result"), "{{result}}"),)),
            ("From ready to bound, p99", "s", ((p99("scheduler_pod_scheduling_sli_duration_seconds"), "p99"),)),
            (
                "Preemption",
                "ops",
                (
                    ("sum(rate(scheduler_preemption_attempts_total[$__rate_interval]))", "attempts"),
                    ("sum(situate_evictions_in_flight)", "victims not gone yet"),
                ),
            ),
            ("Nominated pods", "short", (("sum(situate_nominated_pods)", "nominated"),)),
        ),
    ),
    (
        "The scheduler",
        (
            (
                "Deciding and binding, p99",
                "s",
                (
                    (p99("scheduler_scheduling_algorithm_duration_seconds"), "deciding"),
                    (p99("scheduler_scheduling_attempt_duration_seconds"), "with the bind"),
                    (p99("situate_step_seconds"), "a step of the engine"),
                ),
            ),
            ("API server's answers, p99", "s", ((p99("rest_client_request_duration_seconds", "verb"), "{{verb}}"),)),
            ("Failed operations", "ops", ((rate("situate_failures_total", "operation"), "{{operation}}"),)),
            ("What the engine knows", "short", (("sum by (type) (scheduler_cache_size)", "{{type}}"),)),
            ("Leader", "short", (("leader_election_master_status", "{{instance}}"),)),
            (
                "Shadow: the other scheduler's choices",
                "ops",
                ((rate("situate_shadow_decisions_total", "result"), "{{result}}"),),
            ),
        ),
    ),
    (
        "The control plane",
        (
            (
                "Waiting requests",
                "short",
                (("sum by (priority_level) (situate_apiserver_waiting_requests)", "{{priority_level}}"),),
            ),
            ("Refused requests", "reqps", ((rate("situate_apiserver_refused_requests_total", "limit"), "{{limit}}"),)),
            ("Connections", "short", (("sum(situate_apiserver_connections)", "open"),)),
            ("Watch cache behind the store", "s", (("max(situate_watch_cache_lag_seconds)", "lag"),)),
            ("Room in the store", "bytes", (("min(situate_store_free_bytes)", "free"),)),
            ("From commit to the node's agent, p99", "s", ((p99("situate_snapshot_lag_seconds"), "p99"),)),
        ),
    ),
)


def dashboard() -> dict[str, Any]:
    panels: list[dict[str, Any]] = []
    top = 0
    for title, row in ROWS:
        panels.append(
            {"type": "row", "title": title, "gridPos": {"h": 1, "w": 24, "x": 0, "y": top}, "collapsed": False}
        )
        top += 1
        for at, (name, unit, lines) in enumerate(row):
            column, line = at % COLUMNS, at // COLUMNS
            panels.append(
                {
                    "type": "timeseries",
                    "title": name,
                    "datasource": SOURCE,
                    "gridPos": {"h": HEIGHT, "w": WIDTH, "x": column * WIDTH, "y": top + line * HEIGHT},
                    "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
                    "targets": [
                        {"refId": chr(ord("A") + n), "datasource": SOURCE, "expr": expr, "legendFormat": legend}
                        for n, (expr, legend) in enumerate(lines)
                    ],
                }
            )
        top += HEIGHT * -(-len(row) // COLUMNS)
    numbered = [{"id": number, **panel} for number, panel in enumerate(panels, 1)]
    source = {"name": "source", "type": "datasource", "query": "prometheus", "label": "Prometheus"}
    return {
        "title": "situate",
        "uid": "situate",
        "tags": ["kubernetes", "scheduler"],
        "schemaVersion": 39,
        "time": {"from": "now-6h", "to": "now"},
        "refresh": "30s",
        "templating": {"list": [source]},
        "panels": numbered,
    }


def text() -> str:
    return json.dumps(dashboard(), indent=2) + "\n"


if __name__ == "__main__":
    FILE.write_text(text())
