"""A store in etcd at one revision, and from a backup into an empty prefix: whole, or not to be opened."""

import asyncio
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from situate.cli import main
from situate.store.backup import BackupEntry
from situate.store.errors import BackupError, FormatError
from situate.store.etcd import snapshot
from situate.store.etcd.settings import EtcdSettings
from situate.store.etcd.store import EtcdStore
from situate.store.open import open_store
from situate.store.transactions import Put
from store.etcd_server import Etcd


def settings(server: Etcd) -> EtcdSettings:
    return EtcdSettings(endpoints=tuple(server.endpoints), prefix=f"/{secrets.token_hex(6)}")


def test_what_was_in_one_prefix_is_in_another_with_its_leases(etcd_server: Etcd) -> None:
    async def story() -> None:
        one, other = settings(etcd_server), settings(etcd_server)
        store = await EtcdStore.open(one)
        lease = await store.grant(600)
        for start in range(0, 250, 50):
            await store.commit([], [Put(f"/{at:03}", bytes(9_000)) for at in range(start, start + 50)])
        await store.commit([], [Put("/event", b"e", lease)])
        marker, revision, entries = await snapshot.etcd_snapshot(one)
        assert revision == await store.revision()
        assert len(entries) == 251
        assert await snapshot.fill_etcd(other, marker.identity, entries) > revision
        again = await EtcdStore.open(other)
        assert again.marker is not None
        assert again.marker.identity == marker.identity
        found = {entry.key: entry for entry in (await again.scan("")).entries}
        assert {key: entry.value for key, entry in found.items()} == {entry.key: entry.value for entry in entries}
        assert 590 <= await again.ttl_s(found["/event"].lease) <= 600
        with pytest.raises(BackupError, match="has data; restore into an empty one"):
            await snapshot.fill_etcd(other, marker.identity, entries)
        await again.aclose()
        await store.aclose()

    asyncio.run(story())


def test_a_prefix_whose_restore_was_killed_is_not_opened(etcd_server: Etcd, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        half = settings(etcd_server)

        async def die(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(snapshot, "_write", die)
        with pytest.raises(KeyboardInterrupt):
            await snapshot.fill_etcd(half, "identity", [])
        with pytest.raises(FormatError, match="did not finish"):
            await EtcdStore.open(half)

    asyncio.run(story())


def test_a_lease_that_was_about_to_end_does_not_end_in_the_middle_of_a_restore(etcd_server: Etcd) -> None:
    def slowly() -> Iterator[BackupEntry]:
        yield BackupEntry("/a", b"1", 1, 7, 1)
        time.sleep(4)
        yield BackupEntry("/b", b"2", 1, 7, 1)

    async def story() -> None:
        own = settings(etcd_server)
        await snapshot.fill_etcd(own, "identity", slowly())
        store = await EtcdStore.open(own)
        assert [entry.key for entry in (await store.scan("")).entries] == ["/a", "/b"]
        await store.aclose()

    asyncio.run(story())


def test_a_prefix_without_a_store_is_not_backed_up_and_stays_empty(etcd_server: Etcd) -> None:
    async def story() -> None:
        own = settings(etcd_server)
        with pytest.raises(BackupError, match=f"there is no store in the prefix {own.prefix} of etcd"):
            await snapshot.etcd_snapshot(own)
        await snapshot.fill_etcd(own, "identity", [])

    asyncio.run(story())


def test_a_server_that_starts_first_keeps_its_prefix(etcd_server: Etcd, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        own = settings(etcd_server)
        store = await EtcdStore.open(own)

        async def too_early(*_: object) -> None:
            return None

        monkeypatch.setattr(snapshot, "find_marker", too_early)
        with pytest.raises(BackupError, match="has data; restore into an empty one"):
            await snapshot.fill_etcd(own, "identity", [])
        await store.aclose()
        again = await EtcdStore.open(own)
        assert again.marker == store.marker
        await again.aclose()

    asyncio.run(story())


def test_the_commands_do_the_same(etcd_server: Etcd, tmp_path: Path) -> None:
    one, other = (f"etcd://{etcd_server.endpoints[0]}/{secrets.token_hex(6)}" for _ in range(2))

    async def fill() -> None:
        store = await open_store(one)
        await store.commit([], [Put("/a", b"1"), Put("/b", b"2")])
        await store.aclose()

    async def found() -> list[bytes]:
        store = await open_store(other)
        page = await store.scan("/")
        await store.aclose()
        return [entry.value for entry in page.entries]

    asyncio.run(fill())
    file = str(tmp_path / "backup")
    for words in (["backup", file, "--store", one], ["restore", file, "--store", other]):
        done = CliRunner().invoke(main, [*words, "--dir", str(tmp_path)])
        assert done.exit_code == 0, done.output
    assert asyncio.run(found()) == [b"1", b"2"]
    again = CliRunner().invoke(main, ["restore", file, "--store", other])
    assert again.exit_code == 2
    assert "has data; restore into an empty one" in again.stderr
