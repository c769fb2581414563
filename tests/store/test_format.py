"""The format of a store: a newer one is refused, and an older one is brought up to date, whatever happens meanwhile."""

import asyncio
import random
import secrets
import signal
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from situate import __version__
from situate.server.registry.registry import Registry
from situate.server.requests import Target
from situate.server.resources import RESOURCES
from situate.store.entries import Revision
from situate.store.errors import FormatError
from situate.store.etcd.client import EtcdClient
from situate.store.etcd.format import find_marker, open_marker, write_marker
from situate.store.etcd.protocol import TXN, message
from situate.store.etcd.settings import EtcdSettings
from situate.store.etcd.store import EtcdStore
from situate.store.etcd.translation import Keys
from situate.store.format import FORMAT, StoreMarker, checked, decode, encode
from situate.store.sqlite.migrations import STEPS, load_marker
from situate.store.sqlite.queries import scan
from situate.store.sqlite.schema import prepare
from situate.store.sqlite.store import SqliteStore
from situate.store.transactions import Put
from store.disk import Disk
from store.etcd_server import Etcd
from store.sqlite_stories import tell

RECORDED = sorted((Path(__file__).parent / "releases").glob("*.sql"))
KEYS = {
    "/objects/coordination.k8s.io/leases/shop/node-1",
    "/objects/core/configmaps/shop/kept",
    "/objects/core/events/shop/web-0.1",
    "/objects/core/namespaces/shop",
    "/objects/core/nodes/node-1",
    "/objects/core/pods/shop/web-0",
    "/objects/core/secrets/shop/key",
}


def written(path: Path, recorded: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute(recorded.read_text())
    connection.close()


def format_of(path: Path) -> int:
    connection = apsw.Connection(str(path))
    (found,) = next(iter(connection.execute("PRAGMA user_version")))
    connection.close()
    return int(found)


def test_there_is_a_recorded_store_of_every_format_before_this_one_and_a_step_from_it() -> None:
    assert {int(path.name.partition("-")[0]) for path in RECORDED} == set(range(1, FORMAT))
    assert set(STEPS) == set(range(2, FORMAT + 1))


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda path: path.stem)
def test_a_store_of_an_older_release_is_opened_with_everything_in_it(tmp_path: Path, recorded: Path) -> None:
    path = tmp_path / "store.db"
    written(path, recorded)

    async def story(store: SqliteStore) -> None:
        assert store.marker.release == __version__
        assert len(store.marker.identity) == 32
        page = await store.scan("/")
        assert {entry.key for entry in page.entries} == KEYS
        assert page.revision == Revision(11)
        registry = Registry(store, wall_ns=lambda: 1_800_000_000_000_000_000, new_uid=lambda: "u")
        await registry.start()
        try:
            maps = next(one for one in RESOURCES if one.kind == "ConfigMap")
            found = await registry.get(Target(maps, "shop", "kept"))
            assert found.object(maps)["data"] == {"a": "c"}
            assert list(registry.cache.unreadable()) == []
        finally:
            await registry.aclose()
        await store.commit([], [Put("/more", b"")])

    tell(path, story)
    assert format_of(path) == FORMAT
    tell(path, story_of_more)


async def story_of_more(store: SqliteStore) -> None:
    assert {entry.key for entry in (await store.scan("/")).entries} == {*KEYS, "/more"}


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda path: path.stem)
def test_a_power_loss_at_any_moment_of_a_migration_leaves_a_store_that_opens(recorded: Path) -> None:
    crashed = 0
    for at in range(1, 200):
        disk = Disk()
        connection = disk.connect()
        connection.execute(recorded.read_text())
        connection.close()
        left = [at]

        def die(_operation: str, disk: Disk = disk, left: list[int] = left) -> None:
            left[0] -= 1
            if not left[0]:
                disk.dead = True

        disk.before = die
        connection = disk.connect()
        prepare(connection)
        connection.close()
        if not disk.dead:
            break
        crashed += 1
        again = Disk(disk.after_power_loss(random.Random(at)))
        connection = again.connect()
        prepare(connection)
        assert {entry.key for entry in scan(connection, "/", None, "", 0).entries} == KEYS
        assert load_marker(connection).format == FORMAT
        connection.close()
    assert crashed > 3


KILLED = """
import os, signal, sys
from situate.store.sqlite import migrations
from situate.store.sqlite.file import open_writer
from pathlib import Path
real = migrations.introduce
def die(connection):
    real(connection)
    os.kill(os.getpid(), signal.SIGKILL)
migrations.introduce = die
open_writer(Path(sys.argv[1]))
"""


def test_kill_9_in_the_middle_of_a_migration_leaves_the_old_format_whole(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    written(path, RECORDED[0])
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert format_of(path) == 1

    async def story(store: SqliteStore) -> None:
        assert {entry.key for entry in (await store.scan("/")).entries} == KEYS

    tell(path, story)
    assert format_of(path) == FORMAT


def test_a_newer_store_is_refused_and_says_by_whom_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    async def nothing(_store: SqliteStore) -> None:
        pass

    tell(path, nothing)
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE about SET value = '9.9.9' WHERE name = 'release'; PRAGMA user_version = 7")
    connection.close()
    with pytest.raises(FormatError) as caught:
        tell(path, nothing)
    assert str(caught.value).startswith(
        f"{path}: the store was written by situate 9.9.9, which is newer: it has format 7, and this release"
    )
    assert format_of(path) == 7


def test_a_restore_that_did_not_finish_is_refused() -> None:
    with pytest.raises(FormatError, match="did not finish"):
        checked(StoreMarker(FORMAT, __version__, "a", restoring=True))


def test_in_etcd_a_store_has_a_marker_that_its_servers_share_and_a_newer_one_is_refused(etcd_server: Etcd) -> None:
    async def story() -> None:
        settings = EtcdSettings(endpoints=tuple(etcd_server.endpoints), prefix=f"/{secrets.token_hex(6)}")
        first, second = await asyncio.gather(EtcdStore.open(settings), EtcdStore.open(settings))
        assert first.marker is not None
        assert first.marker == second.marker
        assert first.marker.format == FORMAT
        assert (await first.scan("")).entries == ()
        await write_marker(first._client, first._keys, StoreMarker(FORMAT + 1, "9.9.9", first.marker.identity))
        with pytest.raises(FormatError, match=r"situate 9\.9\.9, which is newer"):
            await EtcdStore.open(settings)
        await first.aclose()
        await second.aclose()

    asyncio.run(story())


def test_in_etcd_an_older_marker_is_replaced_whatever_its_bytes_are(etcd_server: Etcd) -> None:
    async def story() -> None:
        settings = EtcdSettings(endpoints=tuple(etcd_server.endpoints), prefix=f"/{secrets.token_hex(6)}")
        client, keys = EtcdClient(settings), Keys(settings.prefix)
        older = b'{"identity": "abc", "release": "0.0.9", "gone": 1, "format": 1}'
        put = message("RequestOp")(request_put=message("PutRequest")(key=keys.format, value=older))
        await client.ask(TXN, TXN.request(success=[put]))
        marker = await asyncio.wait_for(open_marker(client, keys), 5)
        assert (marker.format, marker.identity) == (FORMAT, "abc")
        assert await find_marker(client, keys) == marker
        await client.aclose()

    asyncio.run(story())


def test_a_marker_that_cannot_be_read_is_said_to_be_so() -> None:
    marker = StoreMarker(FORMAT, "1", "x")
    assert decode(encode(marker)) == marker
    assert not decode(encode(marker)).restoring
    with pytest.raises(FormatError, match="the marker of the store's format cannot be read"):
        decode(b"{}")


def test_a_store_of_this_release_is_used_and_a_newer_one_names_its_release() -> None:
    marker = StoreMarker(FORMAT, "1", "x")
    assert checked(marker) is marker
    with pytest.raises(FormatError, match=r"was written by situate \?, which is newer"):
        checked(StoreMarker(FORMAT + 1, "", "x"))
