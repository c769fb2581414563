"""Memory that is free in between goes back to the system."""

from pathlib import Path

import pytest

from situate.server.http import heap

PIECE = 16 << 10
PIECES = 2_048
MIB = 1 << 20


def resident() -> int:
    words = Path("/proc/self/status").read_text().split()
    return int(words[words.index("VmRSS:") + 1]) << 10


@pytest.mark.skipif(heap._trim is None or not Path("/proc/self/status").exists(), reason="needs glibc and Linux")
def test_what_lies_free_between_what_stays_is_given_back() -> None:
    pieces = [bytes([1]) * PIECE for _ in range(PIECES)]
    staying = pieces[::8]
    full = resident()
    del pieces
    heap.trim_heap()
    assert full - resident() > PIECE * PIECES // 2
    assert len(staying) == PIECES // 8


def test_without_glibc_it_is_left_to_the_c_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heap, "_trim", None)
    heap.trim_heap()
