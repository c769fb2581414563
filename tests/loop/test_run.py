"""One turn: the journal has everything before anybody acts on it."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from builders import node, pod
from situate.core.changes import Change, NodeSeen, PodSeen
from situate.core.config.defaults import default_configuration
from situate.core.effects import Bind, Effect
from situate.core.engine.engine import Engine
from situate.loop.history import History, Step
from situate.loop.journal import Journal
from situate.loop.run import turn

CONFIG = default_configuration()
CHANGES: list[Change] = [NodeSeen(node("n1", cpu="4", pods=10)), PodSeen(pod("web", uid="u1", cpu="1"))]


class Reader:
    """Looks into the journal when it is asked to carry something out."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.found: list[Step] = []

    def perform(self, effects: Sequence[Effect]) -> None:
        self.found = list(History(self.folder))


def test_changes_and_effects_are_in_the_journal_before_effects_are_carried_out(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    with Journal(tmp_path, CONFIG) as journal:
        effects = turn(Engine(CONFIG), 7, CHANGES, reader, journal)
    assert [type(effect) for effect in effects] == [Bind]
    (step,) = reader.found
    assert (step.now, step.changes, step.effects) == (7, tuple(CHANGES), tuple(effects))


def test_a_step_that_fails_is_in_the_journal_with_what_it_failed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("ours")

    monkeypatch.setattr(Engine, "step", fail)
    with Journal(tmp_path, CONFIG) as journal, pytest.raises(RuntimeError):
        turn(Engine(CONFIG), 7, CHANGES, Reader(tmp_path), journal)
    (step,) = History(tmp_path)
    assert (step.changes, step.decided) == (tuple(CHANGES), None)


def test_a_journal_that_stopped_stops_nothing_else(tmp_path: Path) -> None:
    journal = Journal(tmp_path, CONFIG)
    journal.close()
    assert len(turn(Engine(CONFIG), 7, CHANGES, Reader(tmp_path), journal)) == 1


def test_no_journal_is_needed(tmp_path: Path) -> None:
    Journal(tmp_path, CONFIG).close()
    assert len(turn(Engine(CONFIG), 7, CHANGES, Reader(tmp_path))) == 1
