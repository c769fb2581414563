"""Which store a word stands for."""

import asyncio
from pathlib import Path

import pytest

from situate.store.errors import InvalidRequestError
from situate.store.etcd.settings import EtcdSettings
from situate.store.memory import MemoryStore
from situate.store.open import etcd_settings, open_store
from situate.store.sqlite.store import SqliteStore


def test_memory_is_memory_and_a_path_is_a_file(tmp_path: Path) -> None:
    async def story() -> None:
        assert isinstance(await open_store("memory"), MemoryStore)
        for where in (str(tmp_path / "new" / "store.db"), f"sqlite://{tmp_path / 'store.db'}"):
            store = await open_store(where)
            assert isinstance(store, SqliteStore)
            await store.aclose()

    asyncio.run(story())
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


def test_etcd_has_endpoints_and_perhaps_a_prefix() -> None:
    base = EtcdSettings(endpoints=(), username="me", prefix="/mine")
    plain = etcd_settings("etcd://one:2379,two:2379")
    assert (plain.endpoints, plain.prefix, plain.secure) == (("one:2379", "two:2379"), "/situate", False)
    full = etcd_settings("etcds://one:2379/theirs/", base)
    assert (full.endpoints, full.prefix, full.secure, full.username) == (("one:2379",), "/theirs", True, "me")
    assert etcd_settings("etcd://one:2379/", base).prefix == "/mine"


@pytest.mark.parametrize("where", ["etcd://", "etcd:///prefix", "etcd://me:secret@one:2379", "http://one:2379"])
def test_anything_else_is_refused_in_one_line(where: str) -> None:
    with pytest.raises(InvalidRequestError, match="etcd://host:port"):
        asyncio.run(open_store(where))


@pytest.mark.parametrize("where", ["etcd://one:2379?x=1", "etcd://one:2379#x"])
def test_an_address_has_nothing_that_would_be_ignored(where: str) -> None:
    with pytest.raises(InvalidRequestError, match="is not an address of etcd"):
        etcd_settings(where)


def test_empty_endpoints_are_left_out_and_tls_stays() -> None:
    assert etcd_settings("etcd://one:2379,,two:2379,").endpoints == ("one:2379", "two:2379")
    assert etcd_settings("etcd://one:2379", EtcdSettings(endpoints=(), tls=True)).secure
    assert etcd_settings("etcd://one:2379//", EtcdSettings(endpoints=(), prefix="/mine")).prefix == "/mine"


def test_folders_are_made_and_a_home_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        monkeypatch.setenv("HOME", str(tmp_path))
        for where in ("~/one/two/store.db", "~/one/two/store.db", f"sqlite://{tmp_path}/three/four/store.db"):
            await (await open_store(where)).aclose()

    asyncio.run(story())
    assert (tmp_path / "one" / "two" / "store.db").exists()
    assert (tmp_path / "three" / "four" / "store.db").exists()
