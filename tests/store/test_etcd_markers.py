"""The markers of transactions on etcd: what a marker says of a lost answer, and whose markers are used again."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from situate.store.errors import OutcomeUnknownError, StoreError, UnavailableError
from situate.store.etcd.commit_markers import CommitMarker, CommitMarkers
from situate.store.etcd.protocol import LEASE_GRANT, RANGE, TXN, Method, message
from situate.store.etcd.settings import EtcdSettings

_Header = message("ResponseHeader")
_KeyValue = message("KeyValue")
_ResponseOp = message("ResponseOp")
_RangeResponse = message("RangeResponse")
_TxnResponse = message("TxnResponse")
_GrantResponse = message("LeaseGrantResponse")


class Client:
    """Grants leases 1, 2, ... and answers transactions and reads as it is told."""

    def __init__(self) -> None:
        self.settings = EtcdSettings(endpoints=(), markers_ttl_s=0)
        self.granted = 0
        self.answer: Any = None
        self.kept: list[int] = []
        self.lives: list[int | StoreError] = []

    async def ask(self, method: Method, _request: Any) -> Any:
        await asyncio.sleep(0)
        if method is RANGE:
            return self.answer
        assert method is LEASE_GRANT
        self.granted += 1
        return _GrantResponse(ID=self.granted)

    async def try_once(self, method: Method, _request: Any) -> Any:
        assert method is TXN
        return self.answer

    async def keep_alive(self, lease: int) -> int:
        self.kept.append(lease)
        if not self.lives:
            await asyncio.Event().wait()
        said = self.lives.pop(0)
        if isinstance(said, StoreError):
            raise said
        return said


def tell(story: Callable[[Client, CommitMarkers], Awaitable[None]]) -> None:
    async def told() -> None:
        client: Any = Client()
        async with asyncio.timeout(10):
            await story(client, CommitMarkers(client, "/p.marks/"))

    asyncio.run(told())


def found(*values: tuple[bytes, int]) -> Any:
    return _RangeResponse(kvs=[_KeyValue(value=value, mod_revision=at) for value, at in values])


def refused(*values: tuple[bytes, int]) -> Any:
    return _TxnResponse(header=_Header(revision=90), responses=[_ResponseOp(response_range=found(*values))])


def test_a_marker_is_borrowed_by_one_and_used_again_when_it_is_back() -> None:
    async def story(client: Client, markers: CommitMarkers) -> None:
        one, other = await asyncio.gather(markers.borrow(), markers.borrow())
        assert one.key != other.key
        assert one.key.startswith(b"/p.marks/")
        assert (client.granted, one.lease, other.lease) == (1, 1, 1)
        markers.give_back(one, 44)
        again = await markers.borrow()
        assert (again.key, again.modified) == (one.key, 44)
        assert (await markers.borrow()).key not in (one.key, other.key)

    tell(story)


def test_with_the_lease_its_markers_are_gone_and_several_who_notice_get_one_new_lease() -> None:
    async def story(client: Client, markers: CommitMarkers) -> None:
        free, borrowed = await markers.borrow(), await markers.borrow()
        markers.give_back(free, 5)
        await asyncio.gather(markers.renew(1), markers.renew(1))
        assert client.granted == 2
        markers.give_back(borrowed, 6)
        made = await markers.borrow()
        assert made.lease == 2
        assert made.key not in (free.key, borrowed.key)

    tell(story)


def test_the_lease_is_kept_alive_and_replaced_when_it_has_ended() -> None:
    async def story(client: Client, markers: CommitMarkers) -> None:
        keeping = asyncio.create_task(markers.keep_alive())
        for _ in range(5):
            await asyncio.sleep(0)
        assert client.kept == [], "there is none yet"
        client.lives = [60, UnavailableError("away"), 0]
        await markers.borrow()
        while len(client.kept) < 4:
            await asyncio.sleep(0)
        assert client.kept == [1, 1, 1, 2]
        assert not keeping.done()
        keeping.cancel()

    tell(story)


@pytest.mark.parametrize(
    "answer, revision, modified",
    [
        pytest.param(_TxnResponse(succeeded=True, header=_Header(revision=90)), None, 90, id="we were first"),
        pytest.param(refused((b"fence token", 70)), None, 70, id="we were first, and that answer was lost"),
        pytest.param(refused((b"token", 60)), 60, 60, id="it happened"),
    ],
)
def test_the_marker_tells_whether_a_transaction_happened(answer: Any, revision: int | None, modified: int) -> None:
    async def story(client: Client, markers: CommitMarkers) -> None:
        marker = await markers.borrow()
        client.answer = answer
        assert await markers.resolve(marker, b"token") == revision
        again = await markers.borrow()
        assert (again.key, again.modified) == (marker.key, modified), "it may be used again"

    tell(story)


@pytest.mark.parametrize("answer", [refused(), refused((b"another's", 60))], ids=["gone", "another's"])
def test_a_marker_that_is_gone_tells_nothing_and_is_not_used_again(answer: Any) -> None:
    async def story(client: Client, markers: CommitMarkers) -> None:
        marker = await markers.borrow()
        client.answer = answer
        with pytest.raises(OutcomeUnknownError):
            await markers.resolve(marker, b"token")
        assert (await markers.borrow()).key != marker.key

    tell(story)


@pytest.mark.parametrize(
    "answer, revision, modified",
    [
        pytest.param(found((b"token", 60)), 60, 60, id="it happened"),
        pytest.param(found((b"an earlier one's", 50)), None, 50, id="it did not"),
        pytest.param(found(), None, 0, id="it did not, and it would have been the first"),
    ],
)
def test_a_look_is_enough_if_etcd_has_answered(answer: Any, revision: int | None, modified: int) -> None:
    async def story(client: Client, markers: CommitMarkers) -> None:
        marker = await markers.borrow()
        client.answer = answer
        assert await markers.look(marker, b"token") == revision
        assert (await markers.borrow()) == CommitMarker(marker.key, marker.lease, modified)

    tell(story)
