"""The store on etcd, beside a client that answers as we say: what is sent again, and what is raised."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from situate.store.entries import LeaseId, Revision
from situate.store.errors import (
    CompactedError,
    FutureRevisionError,
    InvalidRequestError,
    LeaseNotFoundError,
    StoreError,
    StoreFullError,
    UnavailableError,
)
from situate.store.etcd import errors
from situate.store.etcd import store as store_module
from situate.store.etcd.protocol import LEASE_GRANT, LEASE_REVOKE, LEASE_TIME_TO_LIVE, RANGE, TXN, Method, message
from situate.store.etcd.rpc import RpcError, StatusCode
from situate.store.etcd.settings import EtcdSettings
from situate.store.etcd.store import EtcdStore
from situate.store.transactions import At, Committed, Put, Refused
from store.etcd_stories import count_time

_Header = message("ResponseHeader")
_KeyValue = message("KeyValue")
_ResponseOp = message("ResponseOp")
_RangeResponse = message("RangeResponse")
_TxnResponse = message("TxnResponse")

Answer = Callable[[Any], Any] | Any


def failure(code: StatusCode, text: str = "") -> RpcError:
    return RpcError(code, text)


class Client:
    """`answers` are for transactions, in order; `raises` is for everything else, by the method."""

    def __init__(self, give_up_s: float = 10.0) -> None:
        self.settings = EtcdSettings(endpoints=(), prefix="/p", give_up_s=give_up_s)
        self.problem = ""
        self.answers: list[Answer] = []
        self.sent: list[Any] = []
        self.asked: list[Method] = []
        self.raises: dict[str, Exception] = {}
        self.found = _RangeResponse(header=_Header(revision=50))
        self.leases = 0
        self.ttl_s = 60
        self.closed = False

    async def try_once(self, method: Method, request: Any) -> Any:
        self.asked.append(method)
        if method is not TXN:
            return None
        request = TXN.request.FromString(request.SerializeToString())
        self.sent.append(request)
        answer = self.answers.pop(0) if self.answers else done(9)
        answer = answer(request) if callable(answer) else answer
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def ask(self, method: Method, request: Any, _timeout_s: float | None = None) -> Any:
        self.asked.append(method)
        if method.path in self.raises:
            raise self.raises[method.path]
        if method is LEASE_GRANT:
            self.leases += 1
            return message("LeaseGrantResponse")(ID=self.leases)
        if method is LEASE_TIME_TO_LIVE:
            return message("LeaseTimeToLiveResponse")(TTL=self.ttl_s)
        return self.found

    async def probe(self, _tick: Callable[[], None]) -> None:
        await asyncio.Event().wait()

    async def aclose(self) -> None:
        self.closed = True


def done(revision: int) -> Any:
    return _TxnResponse(succeeded=True, header=_Header(revision=revision))


def refused(*values: tuple[bytes, int]) -> Any:
    """The marker, and the guarded keys."""
    ranges = [_RangeResponse(kvs=[_KeyValue(value=value, mod_revision=at)] if at else []) for value, at in values]
    return _TxnResponse(header=_Header(revision=80), responses=[_ResponseOp(response_range=one) for one in ranges])


def marker_of(request: Any) -> bytes:
    key: bytes = request.compare[0].key
    return key


def tell(
    story: Callable[[Client, EtcdStore], Awaitable[None]], monkeypatch: pytest.MonkeyPatch, give_up_s: float = 10.0
) -> None:
    async def told() -> None:
        monkeypatch.setattr(store_module, "PAUSE_S", 0)
        client: Any = Client(give_up_s)
        async with asyncio.timeout(10):
            store = EtcdStore(client)
            await story(client, store)
            await store.aclose()
            await asyncio.sleep(0)
            assert client.closed
            assert asyncio.all_tasks() == {asyncio.current_task()}, "nothing goes on behind a closed store"

    asyncio.run(told())


WRITE = [Put("/a", b"1")]


def test_a_transaction_whose_own_marker_had_changed_is_sent_again_with_another(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(client: Client, store: EtcdStore) -> None:
        client.answers = [refused((b"somebody's", 44)), done(81)]
        assert await store.commit([], WRITE) == Committed(Revision(81))
        assert len({marker_of(request) for request in client.sent}) == 2
        assert await store.commit([], WRITE) == Committed(Revision(9))
        assert marker_of(client.sent[2]) == marker_of(client.sent[1]), "that one is known, and used again"
        assert client.sent[2].compare[0].mod_revision == 81

    tell(story, monkeypatch)


def test_a_refusal_gives_the_marker_back_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(client: Client, store: EtcdStore) -> None:
        client.answers = [refused((b"", 0), (b"x", 7))]
        outcome = await store.commit([At("/a", Revision(5))], WRITE)
        assert isinstance(outcome, Refused)
        assert (outcome.revision, outcome.failed) == (80, (At("/a", Revision(5)),))
        await store.commit([], WRITE)
        one, other = client.sent
        assert (marker_of(other), other.compare[0].mod_revision) == (marker_of(one), 0)

    tell(story, monkeypatch)


def test_what_does_not_happen_in_time_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(client: Client, store: EtcdStore) -> None:
        count_time(monkeypatch)
        client.answers = [refused((b"somebody's", 44))] * 1_000
        with pytest.raises(UnavailableError, match="the write did not happen"):
            await store.commit([], WRITE)
        assert len(client.sent) > 1

    tell(story, monkeypatch, 0.05)


@pytest.mark.parametrize("happened", [True, False])
def test_a_full_etcd_may_have_written_it(monkeypatch: pytest.MonkeyPatch, happened: bool) -> None:
    async def story(client: Client, store: EtcdStore) -> None:
        def full(request: Any) -> Exception:
            token = request.success[-1].request_put.value if happened else b"an earlier one's"
            client.found = _RangeResponse(kvs=[_KeyValue(value=token, mod_revision=70)])
            return failure(StatusCode.RESOURCE_EXHAUSTED, f"etcdserver: {errors.NO_SPACE}")

        client.answers = [full]
        if happened:
            assert await store.commit([], WRITE) == Committed(Revision(70))
            assert store.problem == ""
            return
        with pytest.raises(StoreFullError):
            await store.commit([], WRITE)
        assert errors.NO_SPACE in store.problem
        client.problem = "etcd is away"
        assert store.problem == "etcd is away"
        client.problem = ""
        await store.commit([], WRITE)
        assert store.problem == "", "there is room again"

    tell(story, monkeypatch)


def test_a_lease_that_has_ended_is_the_transactions_or_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(client: Client, store: EtcdStore) -> None:
        gone = failure(StatusCode.NOT_FOUND, f"etcdserver: {errors.NO_LEASE}")
        client.answers = [gone]
        assert await store.commit([], [Put("/a", b"", LeaseId(77)), Put("/b", b"")]) == Committed(Revision(9))
        assert client.leases == 2, "it was that of our markers"
        client.answers, client.ttl_s = [gone], -1
        with pytest.raises(LeaseNotFoundError, match="there is no lease 77"):
            await store.commit([], [Put("/b", b""), Put("/a", b"", LeaseId(77))])
        client.answers = [gone]
        await store.commit([], WRITE)
        assert client.leases == 3, "a transaction without a lease cannot be to blame"

    tell(story, monkeypatch)


@pytest.mark.parametrize(
    "text, error",
    [
        (errors.COMPACTED, CompactedError),
        (errors.FUTURE, FutureRevisionError),
        ("duplicate key given", InvalidRequestError),
    ],
)
def test_an_invalid_read_says_why(monkeypatch: pytest.MonkeyPatch, text: str, error: type[StoreError]) -> None:
    async def story(client: Client, store: EtcdStore) -> None:
        client.raises[TXN.path] = InvalidRequestError(f"etcd: {text}")
        with pytest.raises(error) as raised:
            await store.read(["/a"], Revision(40))
        assert type(raised.value) is error
        if isinstance(raised.value, CompactedError):
            assert (raised.value.asked, raised.value.compacted) == (40, 41)
        if isinstance(raised.value, FutureRevisionError):
            assert raised.value.current == 50

    tell(story, monkeypatch)


def test_reading_nothing_has_a_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(_client: Client, store: EtcdStore) -> None:
        assert (await store.read([])).revision == 50
        assert (await store.read([], Revision(40))).revision == 40

    tell(story, monkeypatch)


def test_a_lease_that_is_gone_is_revoked_and_any_other_error_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(client: Client, store: EtcdStore) -> None:
        client.raises[LEASE_REVOKE.path] = StoreError(f"etcd: {errors.NO_LEASE}")
        await store.revoke(LeaseId(1))
        client.raises[LEASE_REVOKE.path] = StoreError("etcd: permission denied")
        with pytest.raises(StoreError, match="permission denied"):
            await store.revoke(LeaseId(1))
        with pytest.raises(InvalidRequestError):
            await store.grant(0)
        assert await store.grant(1) == 1

    tell(story, monkeypatch)


@pytest.mark.parametrize("writes", [True, False])
def test_markers_are_ended_if_there_are_some(monkeypatch: pytest.MonkeyPatch, writes: bool) -> None:
    ended: list[Method] = []

    async def story(client: Client, store: EtcdStore) -> None:
        nonlocal ended
        if writes:
            await store.commit([], WRITE)
        ended = client.asked

    tell(story, monkeypatch)
    assert (LEASE_REVOKE in ended) == writes
    assert RANGE not in ended
