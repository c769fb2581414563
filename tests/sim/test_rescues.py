"""The flush puts back who has been parked for five minutes. Whom it rescues should have been woken before."""

import pytest

from scenarios.scenario import Story
from situate.core.plugins.node_resources_fit import NodeResourcesFit


def told(*commands: str) -> Story:
    story = Story()
    for command in commands:
        list(story.tell([command]))
    return story


def test_a_pod_that_is_put_back_and_refused_again_was_not_rescued() -> None:
    queue = told("node n1 cpu=1", "pod web cpu=2", "step", "step 330000", "step 1000").engine.queue
    assert (queue.flushed, queue.rescued) == (1, 0)


def test_a_pod_that_is_placed_though_nothing_woke_it_was_rescued(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NodeResourcesFit, "wakes_on", frozenset())
    story = told("node n1 cpu=1", "pod web cpu=2", "step", "node n1 cpu=2", "step 1000", "step 330000")
    assert (story.engine.queue.flushed, story.engine.queue.rescued) == (1, 1)


def test_a_pod_that_something_woke_right_after_the_flush_owes_the_flush_nothing() -> None:
    story = told("node n1 cpu=1", "pod web cpu=2", "step")
    entry = story.engine.queue.values()[0]
    entry.retry_at_ms = 400_000  # it is put back, and still rests when the node grows
    entry.errors = 1
    for command in ("step 330000", "node n1 cpu=2", "step 1000", "step 100000"):
        list(story.tell([command]))
    assert "web" in {ref.entry.ref.name for ref in story.engine.state.reservations.values()}
    assert (story.engine.queue.flushed, story.engine.queue.rescued) == (1, 0)


def test_a_pod_that_is_gone_before_its_turn_was_not_rescued(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NodeResourcesFit, "wakes_on", frozenset())
    story = told("node n1 cpu=1", "pod web cpu=2", "step", "node n1 cpu=2", "pod-gone web", "step 330000")
    assert (story.engine.queue.flushed, story.engine.queue.rescued) == (0, 0)
