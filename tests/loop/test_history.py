"""Reading a journal back: what was cut off is reported, and what was damaged is one line."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from situate.core.changes import BindDone, PodRef
from situate.core.config.defaults import default_configuration
from situate.core.effects import Bind
from situate.loop.history import History, Step
from situate.loop.journal import Journal, segment_name
from situate.wire.errors import InputError

CONFIG = default_configuration()
REF = PodRef("default", "web", "u1")
FIRST, SECOND, THIRD = (segment_name(number) for number in (1, 2, 3))


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three steps in one file: a header and six records."""
    return written(tmp_path_factory.mktemp("journal"), 1 << 20)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Three steps in three files."""
    return written(tmp_path / "files", 1)


def written(folder: Path, segment_bytes: int) -> Path:
    with Journal(folder, CONFIG, segment_bytes=segment_bytes) as made:
        for now in range(3):
            made.heard(now, [BindDone(REF, now)])
            made.decided([Bind(REF, "n1", now)])
    return folder


def read(path: Path) -> tuple[list[Step], str]:
    history = History(path)
    return list(history), history.cut_off


@given(cut=st.integers(0, 10_000))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_journal_cut_off_anywhere_is_used_up_to_there(journal: Path, tmp_path: Path, cut: int) -> None:
    whole = (journal / FIRST).read_bytes()
    header = whole.index(b"\n") + 1
    cut = header + cut % (len(whole) - header + 1)
    (tmp_path / "cut").write_bytes(whole[:cut])
    steps, cut_off = read(tmp_path / "cut")
    complete = whole[:cut].count(b"\n") - 1
    left = cut - (whole[:cut].rindex(b"\n") + 1)
    assert steps == [
        *list(History(journal))[: complete // 2],
        *(Step(n, n - 1, (BindDone(REF, n - 1),), None) for n in [complete // 2 + 1] if complete % 2),
    ]
    assert cut_off == (
        f"{tmp_path / 'cut'}: record {complete + 2}: was cut off after {left} bytes, and is left out" if left else ""
    )


def test_a_file_that_was_cut_off_in_its_first_line_is_no_journal(journal: Path, tmp_path: Path) -> None:
    (tmp_path / "cut").write_bytes((journal / FIRST).read_bytes()[:50])
    with pytest.raises(InputError, match="not a record of a journal"):
        History(tmp_path / "cut")


def test_blocks_that_were_never_written_are_a_record_cut_off(journal: Path, tmp_path: Path) -> None:
    (tmp_path / "cut").write_bytes((journal / FIRST).read_bytes() + b"\0" * 512)
    steps, cut_off = read(tmp_path / "cut")
    assert len(steps) == 3
    assert cut_off.endswith("record 8: was cut off after 512 bytes, and is left out")


def test_a_crash_on_beginning_a_file_loses_only_that(files: Path) -> None:
    (files / THIRD).write_bytes((files / THIRD).read_bytes()[:20])
    steps, cut_off = read(files)
    assert [step.number for step in steps] == [1, 2]
    assert cut_off.endswith("000003.journal: record 1: was cut off after 20 bytes, and is left out")


def test_a_file_that_is_cut_off_and_not_the_last_is_damaged(files: Path) -> None:
    (files / SECOND).write_bytes((files / SECOND).read_bytes()[:-1])
    with pytest.raises(InputError, match=r"000002\.journal: record 3: not a record"):
        read(files)


@pytest.mark.parametrize(
    "order, problem",
    [
        pytest.param([0, 1, 2, 4, 3, 5, 6], "record 4: is not what follows on step 1", id="out of order"),
        pytest.param([0, 1, 2, 5, 6], "record 4: is not what follows on step 1", id="a step is missing"),
        pytest.param([0, 1, 2, 2], "record 4: is not what follows on step 1", id="an answer is there twice"),
        pytest.param([0, 1, 2, 1, 2], "record 4: is not what follows on step 1", id="a step is there twice"),
        pytest.param([0, 2], "record 2: is not what follows on step 0", id="an answer to nothing"),
        pytest.param([0, 0], "record 2: is not what follows on step 0", id="another beginning"),
        pytest.param([1, 2], "does not begin as a journal does", id="no beginning"),
        pytest.param([], "is empty", id="nothing"),
    ],
)
def test_records_that_do_not_follow_from_one_another_are_refused(
    journal: Path, tmp_path: Path, order: list[int], problem: str
) -> None:
    lines = (journal / FIRST).read_bytes().splitlines(keepends=True)
    (tmp_path / "mixed").write_bytes(b"".join(lines[at] for at in order))
    with pytest.raises(InputError, match=problem):
        read(tmp_path / "mixed")


def test_a_step_without_an_answer_may_be_followed_by_others(journal: Path, tmp_path: Path) -> None:
    """As when the engine failed in it, and somebody went on."""
    lines = (journal / FIRST).read_bytes().splitlines(keepends=True)
    (tmp_path / "failed").write_bytes(b"".join(lines[at] for at in (0, 1, 3, 4)))
    assert [(step.number, step.effects is None) for step in read(tmp_path / "failed")[0]] == [(1, True), (2, False)]


def test_damage_is_told_with_its_file_and_record(files: Path) -> None:
    data = bytearray((files / SECOND).read_bytes())
    data[-10] ^= 4
    (files / SECOND).write_bytes(data)
    with pytest.raises(InputError, match=r"000002\.journal: record 3: damaged: its checksum is another$"):
        read(files)


def test_a_missing_file_is_told(files: Path) -> None:
    (files / SECOND).unlink()
    with pytest.raises(InputError, match=r"000002\.journal: is missing from its journal"):
        read(files)


def test_a_file_of_another_run_is_told(files: Path, tmp_path: Path) -> None:
    with Journal(tmp_path / "other", CONFIG, batch=3, segment_bytes=1) as other:
        for now in range(3):
            other.heard(now, [])
            other.decided([])
    (tmp_path / "other" / SECOND).rename(files / SECOND)
    with pytest.raises(InputError, match="is of another run than the files before it"):
        read(files)


def test_a_later_file_alone_is_told(files: Path) -> None:
    with pytest.raises(InputError, match="is number 2 of its journal, where number 1 belongs"):
        History(files / SECOND)


def test_a_folder_without_journal_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no \.journal files in this folder"):
        History(tmp_path)


def test_a_line_without_end_is_not_read_into_memory(
    journal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("situate.loop.history.RECORD_BYTES", 5_000)
    (tmp_path / "long").write_bytes((journal / FIRST).read_bytes() + b"x" * 6_000)
    with pytest.raises(InputError, match="record 8: not a record of a journal"):
        read(tmp_path / "long")
