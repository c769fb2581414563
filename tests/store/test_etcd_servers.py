"""Several servers on one etcd, several members of one, who may use it, and when it is full."""

import asyncio
import shutil
import signal
import ssl
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, aclosing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kubernetes.certificates import make_key, openssl
from kubernetes.parts import Part
from situate.store.contract import Watch
from situate.store.entries import Revision
from situate.store.errors import ClosedError, StoreError, StoreFullError, UnavailableError
from situate.store.etcd.settings import EtcdSettings
from situate.store.etcd.store import EtcdStore
from situate.store.transactions import Committed
from store.etcd_server import Etcd
from store.etcd_stories import opened, settings, tell
from store.single import create, get, update
from store.stories import Follower, follow, revision_of

# ── several ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_several_servers_count_together_and_see_the_same(etcd_server: Etcd) -> None:
    async def story() -> None:
        chosen = settings(*etcd_server.endpoints)
        async with opened(chosen) as first, opened(chosen) as second, opened(chosen) as third:
            start = revision_of(await create(first, "/count", b"0"))

            async def count(store: EtcdStore) -> None:
                for _ in range(10):
                    while True:
                        entry = await get(store, "/count")
                        assert entry is not None
                        more = str(int(entry.value) + 1).encode()
                        if isinstance(await update(store, "/count", more, entry.modified), Committed):
                            break

            stores = (first, second, third)
            await asyncio.gather(*(count(store) for store in stores))
            last = await first.revision()
            followers = [await follow(store, "/", last, Follower(at=Revision(start - 1))) for store in stores]
            assert [len(follower.batches) for follower in followers] == [31] * 3
            assert followers[0].entries["/count"].value == b"30"
            assert followers[0].batches == followers[1].batches == followers[2].batches

    tell(story)


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Etcd]:
    with Etcd(tmp_path_factory.mktemp("three"), members=3) as cluster:
        yield cluster


def test_when_a_member_is_killed_writes_and_watches_go_on_at_the_others(three: Etcd, etcd_server: Etcd) -> None:
    async def story() -> None:
        async with opened(settings(*three.endpoints, request_s=1.0, give_up_s=20.0)) as store:
            follower = Follower(at=await store.revision())
            async with aclosing(store.watch("/", follower.revision)) as watch:
                told = [revision_of(await create(store, f"/before/{number}", b"")) for number in range(5)]
                await asyncio.to_thread(three.members[0].kill)
                told += [revision_of(await create(store, f"/after/{number}", b"")) for number in range(5)]
                while follower.revision < told[-1]:
                    follower.take(await anext(watch))
            assert [batch.revision for batch in follower.batches] == told
            assert len((await store.scan("/")).entries) == 10

    tell(story)


LEFT_S = 5.0


@pytest.fixture
def frozen() -> Iterator[Callable[[Part], None]]:
    """Freeze a member; whatever was frozen goes on at the end."""
    stopped: list[Part] = []

    def freeze(member: Part) -> None:
        stopped.append(member)
        member.signal(signal.SIGSTOP)

    yield freeze
    for member in stopped:
        if member.running:
            member.signal(signal.SIGCONT)


def test_a_frozen_member_is_left_within_seconds_by_reads_writes_and_watches(
    tmp_path: Path, etcd_server: Etcd, frozen: Callable[[Part], None]
) -> None:
    async def story(three: Etcd) -> None:
        async with (
            opened(EtcdSettings(endpoints=tuple(three.endpoints))) as store,
            opened(EtcdSettings(endpoints=(three.endpoints[1],))) as other,
            aclosing(store.watch("/", await store.revision())) as watch,
        ):
            await _until(watch, revision_of(await create(store, "/before", b"")))
            frozen(three.members[0])
            clock = asyncio.get_running_loop().time
            begun = clock()
            writing = asyncio.create_task(create(store, "/after", b""))
            read = await get(store, "/before")
            written = revision_of(await create(other, "/by-another", b""))
            await _until(watch, max(written, revision_of(await writing)))
            assert read is not None
            assert clock() - begun < LEFT_S

    with Etcd(tmp_path, members=3) as three:
        tell(partial(story, three))


def test_watches_and_writes_go_on_when_a_lost_majority_is_back(tmp_path: Path, etcd_server: Etcd) -> None:
    async def story(three: Etcd) -> None:
        async with AsyncExitStack() as stack:
            stores = [
                await stack.enter_async_context(
                    opened(EtcdSettings(endpoints=(*three.endpoints[first:], *three.endpoints[:first])))
                )
                for first in range(3)
            ]
            watches = [store.watch("/", await store.revision()) for store in stores]
            seen: list[set[str]] = [set() for _ in watches]
            following = [asyncio.create_task(_note(watch, keys)) for watch, keys in zip(watches, seen, strict=True)]
            await create(stores[0], "/before", b"")
            for member in three.members[:2]:
                await asyncio.to_thread(member.kill)
            await asyncio.sleep(4)  # streams are opened in vain, and some are left before they are connected
            assert all(store.problem for store in stores)
            for member in three.members[:2]:
                await asyncio.to_thread(member.start)
            async with asyncio.timeout(3 * LEFT_S):
                await create(stores[0], "/after", b"")
                while not all(keys == {"/before", "/after"} for keys in seen):
                    await asyncio.sleep(0.05)
            for watch in watches:
                await watch.aclose()
            ended = await asyncio.gather(*following, return_exceptions=True)
            assert all(isinstance(each, ClosedError) for each in ended)

    with Etcd(tmp_path, members=3) as three:
        tell(partial(story, three))


async def _note(watch: Watch, keys: set[str]) -> None:
    async for batch in watch:
        keys.update(event.key for event in batch.events)


async def _until(watch: Watch, revision: Revision) -> None:
    while (await anext(watch)).revision < revision:
        pass


def test_an_outage_of_the_only_member_is_known_at_once_and_passes(
    tmp_path: Path, etcd_server: Etcd, frozen: Callable[[Part], None]
) -> None:
    async def story(one: Etcd) -> None:
        async with opened(EtcdSettings(endpoints=tuple(one.endpoints))) as store:
            assert store.problem == ""
            watch = store.watch("/", await store.revision())
            following = asyncio.create_task(anext(watch))
            frozen(one.members[0])
            await asyncio.sleep(2.5)
            assert one.endpoints[0] in store.problem
            writing = asyncio.create_task(create(store, "/late", b""))
            await asyncio.sleep(2)
            one.members[0].signal(signal.SIGCONT)
            async with asyncio.timeout(LEFT_S):
                written = revision_of(await writing)
                while (await following).revision < written:
                    following = asyncio.create_task(anext(watch))
                while store.problem:
                    await asyncio.sleep(0.1)
            await watch.aclose()

    with Etcd(tmp_path) as one:
        tell(partial(story, one))


def make_certificates(home: Path) -> None:
    """ca.crt, server.crt, server.key, client.crt and client.key in `home`."""
    authority = make_key(home / "ca.key")
    openssl("req", "-x509", "-new", "-key", authority, "-subj", "/CN=ca", "-days", "2", "-out", home / "ca.crt")
    (home / "names").write_text("subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n")
    for name in ("server", "client"):
        openssl("req", "-new", "-key", make_key(home / f"{name}.key"), "-subj", f"/CN={name}", "-out", home / "request")
        signer = ("-CA", home / "ca.crt", "-CAkey", authority, "-CAcreateserial", "-extfile", home / "names")
        openssl("x509", "-req", "-in", home / "request", *signer, "-days", "2", "-out", home / f"{name}.crt")


@pytest.mark.skipif(
    shutil.which("openssl") is None, reason="certificates for etcd are made by openssl, and there is none"
)
def test_with_certificates_both_sides_know_each_other(tmp_path: Path, etcd_server: Etcd) -> None:
    make_certificates(tmp_path)
    files = {name: (tmp_path / name).read_bytes() for name in ("ca.crt", "client.crt", "client.key")}
    flags = [f"--cert-file={tmp_path / 'server.crt'}", f"--key-file={tmp_path / 'server.key'}"]
    flags += [f"--trusted-ca-file={tmp_path / 'ca.crt'}", "--client-cert-auth"]
    known = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
    known.load_cert_chain(tmp_path / "client.crt", tmp_path / "client.key")
    with Etcd(tmp_path, flags=flags, tls=known) as server:

        async def story() -> None:
            ours: dict[str, Any] = {
                "ca": files["ca.crt"],
                "certificate": files["client.crt"],
                "key": files["client.key"],
            }
            async with opened(settings(*server.endpoints, **ours)) as store:
                await create(store, "/a", b"")
            wrongs: list[dict[str, Any]] = [{"ca": files["ca.crt"]}, {"tls": True}, {}]
            for wrong in wrongs:
                with pytest.raises(UnavailableError):
                    await EtcdStore.open(settings(*server.endpoints, request_s=0.3, give_up_s=0.5, **wrong))

        tell(story)


# ── rights, and room ────────────────────────────────────────────────────────────────────────────────────────────────


def post(endpoint: str, path: str, body: str, token: str = "") -> None:
    request = urllib.request.Request(f"http://{endpoint}/v3/{path}", body.encode(), {"Authorization": token})
    urllib.request.urlopen(request, timeout=5).read()


def test_a_name_and_a_password_are_enough_and_needed(tmp_path: Path, etcd_server: Etcd) -> None:
    with Etcd(tmp_path, flags=["--bcrypt-cost=4"]) as server:
        (endpoint,) = server.endpoints
        post(endpoint, "auth/role/add", '{"name": "root"}')
        post(endpoint, "auth/user/add", '{"name": "root", "password": "right"}')
        post(endpoint, "auth/user/grant", '{"user": "root", "role": "root"}')
        post(endpoint, "auth/enable", "{}")

        async def story() -> None:
            async with opened(settings(endpoint, username="root", password="right")) as store:
                follower = Follower(at=await store.revision())
                revision = revision_of(await create(store, "/a", b"", await store.grant(60)))
                store._client._token = "stale.1"
                revision = revision_of(await create(store, "/b", b""))
                store._client._token = "stale.2"
                await follow(store, "/", revision, follower)
                assert len(follower.batches) == 2
            for wrong in ({"username": "root", "password": "wrong"}, {}):
                with pytest.raises(StoreError, match="etcd: "):
                    await EtcdStore.open(settings(endpoint, **wrong))

        tell(story)


def test_without_room_writes_are_refused_and_reads_go_on(tmp_path: Path, etcd_server: Etcd) -> None:
    with Etcd(tmp_path, flags=["--quota-backend-bytes=4000000"]) as server:

        async def story() -> None:
            async with opened(settings(*server.endpoints)) as store:
                written = 0
                full = ""
                while written < 200 and not full:
                    try:
                        await create(store, f"/{written}", bytes(200_000))
                        written += 1
                    except StoreFullError as error:
                        full = str(error)
                assert "database space exceeded" in full
                assert len((await store.scan("/")).entries) == written

        tell(story)
