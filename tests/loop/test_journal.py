"""The journal on disk: what is written when, in which files, up to which limits, and what happens then."""

import os
import stat
from pathlib import Path

import pytest

from builders import node, pod
from situate.core.changes import BindDone, NodeSeen, PodRef, PodSeen
from situate.core.config.defaults import default_configuration
from situate.core.effects import Bind
from situate.core.engine.engine import BATCH
from situate.loop.history import History
from situate.loop.journal import SYNC_EVERY_MS, Journal, Keep, segment_name
from situate.wire.journal import JournalHeader, StepChanges, decode_record, digest_of, fingerprint

CONFIG = default_configuration()
REF = PodRef("default", "web", "u1")
BIND = Bind(REF, "n1", 1)


def lines(folder: Path, segment: int = 1) -> list[bytes]:
    return (folder / segment_name(segment)).read_bytes().splitlines(keepends=True)


def test_a_journal_begins_with_what_it_is_of(tmp_path: Path) -> None:
    Journal(tmp_path / "j", CONFIG).close()
    (header,) = map(decode_record, lines(tmp_path / "j"))
    assert header == JournalHeader(config=CONFIG, batch=BATCH, format=fingerprint())


def test_what_a_step_is_told_is_on_file_before_the_step(tmp_path: Path) -> None:
    journal = Journal(tmp_path, CONFIG)
    journal.heard(5, [NodeSeen(node()), PodSeen(pod(uid="u1"))])
    assert decode_record(lines(tmp_path)[-1]) == StepChanges(1, 5, (NodeSeen(node()), PodSeen(pod(uid="u1"))))
    (step,) = History(tmp_path)
    assert (step.number, step.now, step.decided) == (1, 5, None)
    journal.close()


def test_steps_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    with Journal(tmp_path, CONFIG) as journal:
        journal.heard(5, [PodSeen(pod())])
        journal.decided([BIND])
        journal.heard(9, [])
        journal.decided([])
    first, second = History(tmp_path)
    assert (first.changes, first.effects) == ((PodSeen(pod()),), (BIND,))
    assert (second.number, second.now, second.changes, second.effects) == (2, 9, (), ())


def test_effects_may_be_kept_as_a_digest(tmp_path: Path) -> None:
    with Journal(tmp_path, CONFIG, keep=Keep.DIGEST) as journal:
        journal.heard(5, [])
        journal.decided([BIND])
    (step,) = History(tmp_path)
    assert step.effects is None
    assert step.decided is not None
    assert step.decided.digest == digest_of([BIND])


def test_a_full_file_is_followed_by_the_next(tmp_path: Path) -> None:
    with Journal(tmp_path, CONFIG, segment_bytes=1) as journal:
        for now in range(3):
            journal.heard(now, [BindDone(REF, now)])
            journal.decided([BIND])
    assert sorted(path.name for path in tmp_path.iterdir()) == [segment_name(number) for number in (1, 2, 3)]
    headers = [decode_record(lines(tmp_path, number)[0]) for number in (1, 2, 3)]
    assert [(one.segment, one.first_step) for one in headers if isinstance(one, JournalHeader)] == [
        (1, 1),
        (2, 2),
        (3, 3),
    ]
    assert [step.number for step in History(tmp_path)] == [1, 2, 3]
    assert [step.number for step in History(tmp_path / segment_name(1))] == [1, 2, 3]


def test_at_its_limit_the_journal_stops_and_all_before_can_be_read(tmp_path: Path) -> None:
    with Journal(tmp_path, CONFIG, limit_bytes=20_000) as journal:
        while not journal.stopped:
            journal.heard(1, [PodSeen(pod())])
            journal.decided([BIND])
        written = journal.steps
        journal.heard(2, [])
        assert journal.stopped == "the journal's limit of 20000 bytes is reached"
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 20_000
    assert [step.number for step in History(tmp_path)] in ([*range(1, written)], [*range(1, written + 1)])


def test_a_disk_that_refuses_stops_the_journal_and_nothing_else(tmp_path: Path) -> None:
    journal = Journal(tmp_path, CONFIG, segment_bytes=1)
    journal.heard(1, [])
    journal.decided([])
    (tmp_path / segment_name(2)).mkdir()
    journal.heard(2, [])
    journal.decided([])
    assert "File exists" in journal.stopped
    journal.close()
    assert "File exists" in journal.stopped


def test_what_no_file_can_hold_stops_the_journal_and_nothing_else(tmp_path: Path) -> None:
    with Journal(tmp_path, CONFIG) as journal:
        journal.heard(1, [PodSeen(pod("\ud800"))])
        assert "surrogates" in journal.stopped
    assert list(History(tmp_path)) == []


def test_another_run_is_never_written_over(tmp_path: Path) -> None:
    Journal(tmp_path, CONFIG).close()
    with pytest.raises(FileExistsError):
        Journal(tmp_path, CONFIG)


def test_only_the_owner_may_read_it(tmp_path: Path) -> None:
    Journal(tmp_path, CONFIG).close()
    assert stat.S_IMODE((tmp_path / segment_name(1)).stat().st_mode) == 0o600


def test_nothing_is_written_after_closing(tmp_path: Path) -> None:
    journal = Journal(tmp_path, CONFIG, segment_bytes=1)
    journal.close()
    journal.close()
    journal.heard(1, [])
    journal.decided([])
    assert journal.stopped == "closed"
    assert len(lines(tmp_path)) == 1


def test_the_disk_is_forced_once_a_second_of_the_callers_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path, CONFIG)
    forced: list[int] = []
    monkeypatch.setattr(os, "fsync", forced.append)
    for now in (0, 1, SYNC_EVERY_MS - 1, SYNC_EVERY_MS, SYNC_EVERY_MS + 1, 0):
        journal.heard(now, [])
    assert len(forced) == 3  # the first, a second later, and when the clock went back
    journal.close()
    assert len(forced) == 4
