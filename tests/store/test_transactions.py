"""The limits of a transaction: each is reached exactly, and exceeded by one."""

import pytest

from situate.store.entries import ABSENT
from situate.store.errors import InvalidRequestError
from situate.store.keys import MAX_KEY_BYTES
from situate.store.transactions import (
    MAX_OPERATIONS,
    MAX_TRANSACTION_BYTES,
    At,
    Delete,
    Guard,
    Holds,
    Present,
    Put,
    Write,
    validated,
)


@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize("what", ["guards", "writes"])
def test_so_many_guards_and_so_many_writes(what: str, more: int) -> None:
    count = MAX_OPERATIONS + more
    guards = [Present(f"/{number}") for number in range(count if what == "guards" else 1)]
    writes = [Delete(f"/{number}") for number in range(count if what == "writes" else 1)]
    if not more:
        assert len(validated(guards, writes).guards) == len(guards)
        return
    with pytest.raises(InvalidRequestError, match=f"at most {MAX_OPERATIONS} guards and as many writes"):
        validated(guards, writes)


@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize(
    "guards, writes, size",
    [
        pytest.param([], [], 0, id="a value and its key"),
        pytest.param([At("/b", ABSENT)], [], 4, id="a guard's key is asked for and returned"),
        pytest.param([At("/a", ABSENT)], [], 4, id="that of a written key as well"),
        pytest.param([Holds("/b", b"12345")], [], 9, id="a guard's value"),
        pytest.param([Present("/ä")], [], 6, id="bytes, not letters"),
        pytest.param([], [Delete("/bcd")], 4, id="the key of a delete"),
        pytest.param([], [Put("/bcd", b"12")], 6, id="a second value"),
    ],
)
def test_so_many_bytes(guards: list[Guard], writes: list[Write], size: int, more: int) -> None:
    value = bytes(MAX_TRANSACTION_BYTES - len("/a") - size + more)
    if not more:
        validated(guards, [Put("/a", value), *writes])
        return
    with pytest.raises(InvalidRequestError, match=f"this one has {MAX_TRANSACTION_BYTES + 1}$"):
        validated(guards, [Put("/a", value), *writes])


def test_a_key_is_written_once_and_may_be_guarded_twice() -> None:
    validated([Present("/a"), Holds("/a", b"")], [Put("/a", b""), Delete("/b")])
    with pytest.raises(InvalidRequestError, match="a transaction writes a key once"):
        validated([], [Put("/a", b""), Delete("/a")])


@pytest.mark.parametrize("key", ["", "a\0b", "\ud800", "x" * (MAX_KEY_BYTES + 1), "ä" * (MAX_KEY_BYTES // 2) + "x"])
def test_a_key_that_not_every_store_can_hold_is_refused_wherever_it_is(key: str) -> None:
    for guards, writes in (([Present(key)], []), ([], [Put(key, b"")]), ([], [Delete(key)])):
        with pytest.raises(InvalidRequestError, match="key"):
            validated(guards, writes)
