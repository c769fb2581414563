"""What is sent is JSON that says what it should, whatever stands in names and texts."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from situate.core.changes import PodRef
from situate.wire.bodies import binding, delete_options, event, micro_time, seconds_time, series

NS = 1_767_225_600_123_456_789
texts = st.text(st.characters(codec="utf-8"), max_size=20)
refs = st.builds(PodRef, texts, texts, texts)


@given(refs, texts, texts)
@settings(max_examples=60)
def test_a_binding_has_all_it_was_given(ref: PodRef, node: str, version: str) -> None:
    body = json.loads(binding(ref, node, version))
    wanted = {"name": ref.name, "namespace": ref.namespace, "uid": ref.uid, "resourceVersion": version}
    kept = {key: value for key, value in wanted.items() if value or key in ("name", "namespace")}
    assert body["metadata"] == kept
    assert body["target"]["name"] == node


@given(refs, st.none() | st.integers(0, 9), st.dictionaries(texts, texts, max_size=3))
@settings(max_examples=60)
def test_a_binding_has_the_annotations_that_go_with_it(ref: PodRef, term: int | None, notes: dict[str, str]) -> None:
    body = json.loads(binding(ref, "n1", "", term, tuple(notes.items())))
    ours = {} if term is None else {"situate.dev/term": str(term)}
    assert body["metadata"].get("annotations", {}) == notes | ours


@given(refs, st.none() | refs, texts, texts)
@settings(max_examples=60)
def test_an_event_has_all_it_was_given(ref: PodRef, related: PodRef | None, note: str, reason: str) -> None:
    made = event(
        "n", NS, ref, controller="c", instance="i", kind="Warning", reason=reason, action="a", note=note,
        related=related,
    )  # fmt: skip
    body = json.loads(made)
    assert (body["note"], body["reason"], body["type"]) == (note, reason, "Warning")
    assert body["regarding"]["name"] == ref.name
    assert ("related" in body) == (related is not None)
    assert body["metadata"]["namespace"] == (ref.namespace or "default")


@given(st.integers(0, 4_000_000_000_000_000_000))
@settings(max_examples=100)
def test_times_are_as_kubernetes_writes_them(ns: int) -> None:
    moment = datetime.fromtimestamp(ns // 1_000_000_000, UTC).replace(microsecond=ns % 1_000_000_000 // 1_000)
    assert micro_time(ns) == moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    assert seconds_time(ns) == moment.strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.mark.parametrize(
    "made, body",
    [
        pytest.param(
            delete_options("u"),
            {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "u"}},
            id="a deletion is of one very object",
        ),
        pytest.param(
            series(3, NS), {"count": 3, "lastObservedTime": "2026-01-01T00:00:00.123456Z"}, id="how often an event came"
        ),
    ],
)
def test_a_body_says_this(made: bytes, body: dict[str, Any]) -> None:
    assert json.loads(made) == body
