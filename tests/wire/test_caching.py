import gc
import sys
from collections.abc import Callable
from typing import Any

import pytest

from situate.server.http import negotiation, query, urls
from situate.server.kinds.batch import cronjob
from situate.server.registry.selectable_fields import selector_values
from situate.wire.caching import cached_if_short
from situate.wire.schema import values

LONG = 1 << 20


def test_short_text_is_computed_once_and_long_text_each_time() -> None:
    calls: list[str] = []

    @cached_if_short(entries=10, length=3)
    def upper(text: str, suffix: str) -> str:
        calls.append(text)
        return text.upper() + suffix

    assert [upper("abc", "!"), upper("abc", "!"), upper("abcd", "!"), upper("abcd", "!")] == ["ABC!"] * 2 + [
        "ABCD!"
    ] * 2
    assert calls == ["abc", "abcd", "abcd"]


@pytest.mark.parametrize(
    "function, shape",
    [
        pytest.param(urls.parse_url, "/{}", id="paths"),
        pytest.param(query.parse_query, "labelSelector={}", id="queries"),
        pytest.param(negotiation.parse_accept, "application/json;a={}", id="Accept"),
        pytest.param(negotiation.wants_discovery, "application/json;a={}", id="Accept of discovery"),
        pytest.param(negotiation.body_type, "application/json;a={}", id="Content-Type"),
        pytest.param(negotiation.patch_type, "application/merge-patch+json;a={}", id="Content-Type of patches"),
        pytest.param(values.canonical_quantity, "{}1", id="quantities"),
        pytest.param(values.time_text, "2026-01-01T00:00:00.{}Z", id="times"),
        pytest.param(cronjob._is_known, "{}", id="time zones"),
        pytest.param(cronjob._problem, "{}", id="schedules"),
    ],
)
def test_long_text_of_a_client_is_not_kept(function: Callable[[str], Any], shape: str) -> None:
    filling = " " if function is values.canonical_quantity else "7"
    text = shape.format(filling * (4_000 if function is urls.parse_url else LONG))
    before = sys.getrefcount(text)
    function(text)
    gc.collect()
    assert sys.getrefcount(text) == before


def test_many_labels_are_not_shared_with_other_objects() -> None:
    labels = ",".join(f'"label-{number}":"x"' for number in range(1_000))
    stored = f'{{"metadata":{{"name":"a","uid":"u","labels":{{{labels}}}}}}}'.encode()
    _, one, _ = selector_values("/configmaps", stored)
    _, two, _ = selector_values("/configmaps", stored)
    assert one == two
    assert one is not two
