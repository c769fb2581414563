"""etcd in bad weather: lost answers, lost requests, late requests, connections that break."""

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from situate.store.entries import Revision
from situate.store.errors import InvalidRequestError, OutcomeUnknownError, UnavailableError
from situate.store.etcd.client import EtcdClient
from situate.store.etcd.protocol import LEASE_REVOKE, TXN
from situate.store.etcd.rpc import RpcError, StatusCode
from situate.store.etcd.store import EtcdStore
from situate.store.transactions import Committed, Put
from store.etcd_server import Etcd
from store.etcd_stories import opened, settings, tell
from store.proxy import Proxy
from store.single import create, get, update
from store.stories import Follower, follow, revision_of

# ── was it written? ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_lost_answer_is_found_out_and_the_write_is_there_once(etcd_server: Etcd) -> None:
    async def story() -> None:
        async with Proxy(etcd_server.endpoints[0]) as proxy, opened(settings(proxy.endpoint)) as store:
            first = revision_of(await create(store, "/a", b"1"))
            proxy.deafen()
            writing = asyncio.create_task(update(store, "/a", b"2", first))
            await proxy.unheard.wait()
            proxy.hear()
            proxy.cut_clients()
            revision = revision_of(await writing)
            entry = await get(store, "/a")
            assert entry is not None
            assert (entry.value, entry.modified) == (b"2", revision)
            follower = await follow(store, "/", revision, Follower(at=Revision(first - 1)))
            assert [batch.revision for batch in follower.batches] == [first, revision]

    tell(story)


def test_what_etcd_itself_refuses_is_not_sent_again(etcd_server: Etcd, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with opened(settings(etcd_server.endpoints[0])) as store:
            await create(store, "/a", b"1")
            sent = 0
            try_once = EtcdClient.try_once

            async def refused(self: EtcdClient, call: Any, request: Any, timeout_s: float | None = None) -> Any:
                nonlocal sent
                if call is not TXN:  # a probe
                    return await try_once(self, call, request, timeout_s)
                sent += 1
                if sent == 1:
                    raise RpcError(
                        StatusCode.INVALID_ARGUMENT,
                        details="etcdserver: request is too large",
                    )
                return await try_once(self, call, request, timeout_s)

            monkeypatch.setattr(EtcdClient, "try_once", refused)
            with pytest.raises(InvalidRequestError, match="request is too large"):
                await create(store, "/b", b"2")
            assert sent == 1
            assert await get(store, "/b") is None

    tell(story)


def test_a_lost_request_is_sent_again(etcd_server: Etcd) -> None:
    async def story() -> None:
        chosen = settings(etcd_server.endpoints[0])
        async with (
            Proxy(etcd_server.endpoints[0]) as proxy,
            opened(chosen) as other,
            opened(settings(proxy.endpoint, prefix=chosen.prefix)) as store,
        ):
            first = revision_of(await create(store, "/a", b"1"))
            proxy.hold(b"/a")
            writing = asyncio.create_task(update(store, "/a", b"2", first))
            await proxy.held.wait()
            proxy.cut_clients()
            proxy.lose_held()
            entry = await get(other, "/a")
            assert entry is not None
            assert entry.value == b"1"
            proxy.release()
            revision = revision_of(await writing)
            follower = await follow(other, "/", revision, Follower(at=Revision(first - 1)))
            assert [batch.revision for batch in follower.batches] == [first, revision]

    tell(story)


def test_a_request_that_arrives_after_we_gave_it_up_does_nothing(etcd_server: Etcd) -> None:
    """The first endpoint holds the write back; we ask at the second, and only then the first lets it through."""

    async def story() -> None:
        (there,) = etcd_server.endpoints
        async with Proxy(there) as proxy, opened(settings(proxy.endpoint, there, request_s=0.5)) as store:
            start = revision_of(await store.commit([], [Put("/count", b"0")]))
            proxy.hold(b"/count")
            # Without guards, nothing but the mark keeps it from happening twice.
            await store.commit([], [Put("/count", b"1")])
            assert proxy.held.is_set()
            proxy.answered.clear()
            proxy.release()
            await proxy.answered.wait()
            last = start
            for number in range(10):
                last = revision_of(await store.commit([], [Put(f"/later/{number}", b"")]))
            told = (await follow(store, "/count", last, Follower(at=Revision(start - 1)))).batches
            assert [event.entry and event.entry.value for batch in told for event in batch.events] == [b"0", b"1"]

    tell(story)


def test_if_it_cannot_be_found_out_that_is_said(etcd_server: Etcd) -> None:
    async def story() -> None:
        (there,) = etcd_server.endpoints
        async with Proxy(there) as proxy, opened(settings(proxy.endpoint, request_s=0.2, give_up_s=1.0)) as store:
            await create(store, "/a", b"")
            proxy.hold(b"/b")
            with pytest.raises(OutcomeUnknownError):
                await create(store, "/b", b"")
            with pytest.raises(UnavailableError):
                await get(store, "/a")
            proxy.release()
            proxy.cut_clients()
            await create(store, "/c", b"")

    tell(story)


def test_whoever_gives_up_a_write_leaves_no_mark_that_others_trip_over(etcd_server: Etcd) -> None:
    async def story() -> None:
        async with opened(settings(*etcd_server.endpoints)) as store:
            for number in range(20):
                writing = asyncio.create_task(create(store, f"/{number}", b""))
                for _ in range(number % 4):
                    await asyncio.sleep(0)
                writing.cancel()
                await asyncio.wait([writing])
            for number in range(20):
                revision_of(await store.commit([], [Put(f"/{number}", b"x")]))

    tell(story)


def test_marks_are_made_anew_when_their_lease_is_gone(etcd_server: Etcd) -> None:
    async def story() -> None:
        chosen = settings(*etcd_server.endpoints)
        async with opened(chosen) as store:
            await create(store, "/a", b"")
            client = EtcdClient(chosen)
            await client.ask(LEASE_REVOKE, LEASE_REVOKE.request(ID=store._markers.lease))
            await client.aclose()
            assert isinstance(await create(store, "/b", b""), Committed)

    tell(story)


def test_marks_go_when_a_store_is_closed(etcd_server: Etcd) -> None:
    async def story() -> None:
        chosen = settings(*etcd_server.endpoints)
        async with opened(chosen) as store:
            await asyncio.gather(*(create(store, f"/{number}", b"") for number in range(5)))
        async with opened(settings(*etcd_server.endpoints, prefix=chosen.prefix + ".marks")) as marks:
            assert (await marks.scan("")).entries == ()

    tell(story)


# ── connections ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_watch_goes_on_where_its_connection_broke(etcd_server: Etcd) -> None:
    async def story() -> None:
        chosen = settings(etcd_server.endpoints[0])
        async with (
            Proxy(etcd_server.endpoints[0]) as proxy,
            opened(chosen) as other,
            opened(settings(proxy.endpoint, prefix=chosen.prefix)) as store,
        ):
            follower = Follower(at=await store.revision())
            async with aclosing(store.watch("/", follower.revision)) as watch:
                for number in range(6):
                    revision = revision_of(await create(other, f"/{number}", b""))
                    while follower.revision < revision:
                        follower.take(await anext(watch))
                    proxy.cut_clients()
                    await create(other, f"/{number}/unseen", b"")
            assert [len(batch.events) for batch in follower.batches] == [1] * 11

    tell(story)


def test_without_etcd_opening_fails_in_time(tmp_path: Path) -> None:
    async def story() -> None:
        with pytest.raises(UnavailableError, match="etcd"):
            await EtcdStore.open(settings("127.0.0.1:1", request_s=0.2, give_up_s=0.4))

    tell(story)
