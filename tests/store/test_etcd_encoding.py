"""A transaction that is encoded by hand is the one that protobuf would have made."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from situate.store.entries import LeaseId, Revision
from situate.store.etcd.encoding import encoded
from situate.store.etcd.protocol import EQUAL, GREATER, OF_MODIFIED, OF_VALUE, TXN, message
from situate.store.etcd.translation import Keys
from situate.store.transactions import At, Delete, Guard, Holds, Present, Put, Transaction, Write

_Compare = message("Compare")
_RequestOp = message("RequestOp")
_Put = message("PutRequest")
_Delete = message("DeleteRangeRequest")
_Range = message("RangeRequest")

KEYS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=200)
NUMBERS = st.one_of(st.integers(0, 300), st.integers(0, 2**63 - 1))
VALUES = st.one_of(st.binary(max_size=300), st.just(bytes(20_000)))
GUARDS = st.one_of(st.builds(At, KEYS, NUMBERS.map(Revision)), st.builds(Present, KEYS), st.builds(Holds, KEYS, VALUES))
WRITES = st.one_of(st.builds(Put, KEYS, VALUES, NUMBERS.map(LeaseId)), st.builds(Delete, KEYS))


def by_protobuf(keys: Keys, asked: Transaction, marker: bytes, modified: int, lease: int, token: bytes) -> Any:
    def compare(guard: Guard) -> Any:
        key = keys.there(guard.key)
        if isinstance(guard, At):
            return _Compare(result=EQUAL, target=OF_MODIFIED, key=key, mod_revision=guard.revision)
        if isinstance(guard, Present):
            return _Compare(result=GREATER, target=OF_MODIFIED, key=key, mod_revision=0)
        return _Compare(result=EQUAL, target=OF_VALUE, key=key, value=guard.value)

    def operation(write: Write) -> Any:
        key = keys.there(write.key)
        if isinstance(write, Put):
            return _RequestOp(request_put=_Put(key=key, value=write.value, lease=write.lease))
        return _RequestOp(request_delete_range=_Delete(key=key))

    marked = _Compare(result=EQUAL, target=OF_MODIFIED, key=marker, mod_revision=modified)
    written = _RequestOp(request_put=_Put(key=marker, value=token, lease=lease))
    read = [marker, *(keys.there(guard.key) for guard in asked.guards)]
    return TXN.request(
        compare=[marked, *map(compare, asked.guards)],
        success=[*map(operation, asked.writes), written],
        failure=[_RequestOp(request_range=_Range(key=key)) for key in read],
    )


@given(st.lists(GUARDS, max_size=5), st.lists(WRITES, max_size=5), NUMBERS, NUMBERS, st.binary(max_size=200))
def test_both_are_the_same(guards: list[Guard], writes: list[Write], modified: int, lease: int, token: bytes) -> None:
    asked, keys = Transaction(tuple(guards), tuple(writes)), Keys("/p")
    request = encoded(keys, asked, b"/p.marks/1", modified, lease, token)
    expected = by_protobuf(keys, asked, b"/p.marks/1", modified, lease, token)
    assert TXN.request.FromString(request.SerializeToString()) == expected
