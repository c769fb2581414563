"""Calls of conversion webhooks are counted under kube-apiserver's names."""

from typing import Any, cast

import pytest
from prometheus_client.parser import text_string_to_metric_families

from server.apiextensions.converting import Converting, of, run
from server.apiextensions.world import refusal
from situate.server.apiextensions import conversion_metrics
from situate.server.apiextensions.conversion_metrics import ConversionMetrics
from situate.server.requests import Target

LABELS = ("result", "failure_type", "crd_name", "from_version", "to_version", "succeeded")
REVIEWS = "apiserver_conversion_webhook_request_total"
SECONDS = "apiserver_conversion_webhook_duration_seconds_count"
OF_DEFINITIONS = "apiserver_crd_conversion_webhook_duration_seconds_count"
FAILED = "conversion_webhook_{}_failure"


def values(metrics: ConversionMetrics, name: str) -> dict[tuple[str, ...], float]:
    """By the values of the labels."""
    families = text_string_to_metric_families(metrics.render().decode())
    samples = [one for family in families for one in family.samples if one.name == name]
    return {tuple(one.labels[label] for label in LABELS if label in one.labels): one.value for one in samples}


def failing(at: Converting, how: str) -> None:
    match how:
        case "call":
            at.webhook.fails = "it is dead"
        case "malformed_response":
            at.webhook.made = cast(list[Any], "no list")
        case "partial_response":
            at.webhook.made = []
        case "invalid_converted_object":
            at.webhook.change = lambda one: one["metadata"].update(name="another")


@pytest.mark.parametrize("how", ["call", "malformed_response", "partial_response", "invalid_converted_object"])
def test_calls_are_counted_by_what_failed(how: str) -> None:
    async def story(at: Converting) -> None:
        await at.here.create(at.v1, of("a", "v1"))
        assert values(at.metrics, REVIEWS) == {}
        await at.get("v2")
        await at.list("v2")
        failing(at, how)
        assert (await refusal(at.here.registry.get(Target(at.v2, "default", "a"))))[0] == 500
        expected = {("success", ""): 2.0, ("failure", FAILED.format(how)): 1.0}
        assert values(at.metrics, REVIEWS) == values(at.metrics, SECONDS) == expected
        assert values(at.metrics, OF_DEFINITIONS) == {
            ("things.example.com", "v1", "v2", "true"): 2.0,
            ("things.example.com", "v1", "v2", "false"): 1.0,
        }

    run(story)


def test_many_definitions_share_a_series(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion_metrics, "MAX_DEFINITIONS", 2)
    metrics = ConversionMetrics()
    for number in range(5):
        metrics.observe(f"d{number}", ("v1", "v2"), 0.1)
    assert values(metrics, OF_DEFINITIONS) == {
        ("d0", "v1", "v2", "true"): 1.0,
        ("d1", "v1", "v2", "true"): 1.0,
        ("other", "other", "other", "true"): 3.0,
    }
