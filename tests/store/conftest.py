"""One store of each kind for the tests that ask all of them the same."""

import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from situate.store.contract import Store
from situate.store.etcd.settings import EtcdSettings
from situate.store.etcd.store import EtcdStore
from situate.store.memory import MemoryStore
from situate.store.sqlite.store import SqliteStore
from store.etcd_server import Etcd, missing
from store.stories import Opener

ON_ETCD = "etcd_server"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where there is no etcd, one test says so for all."""
    absent = missing()
    if absent is None:
        return
    here = Path(__file__).parent
    idle = [item for item in items if item.path.is_relative_to(here) and _is_on_etcd(item)]
    for item in idle[:1]:
        item.add_marker(pytest.mark.skip(f"{len(idle)} tests: {absent}"))
    if idle[1:]:
        config.hook.pytest_deselected(items=idle[1:])
        items[:] = [item for item in items if item not in idle[1:]]


def _is_on_etcd(item: pytest.Item) -> bool:
    callspec = getattr(item, "callspec", None)
    return ON_ETCD in getattr(item, "fixturenames", ()) or (callspec and callspec.params.get("kind") == "etcd") is True


@pytest.fixture(scope="session")
def etcd_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Etcd]:
    with Etcd(tmp_path_factory.mktemp("etcd")) as server:
        yield server


@pytest.fixture(params=["memory", "sqlite", "etcd"])
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def opener(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    """An empty store of that kind."""
    settings = None
    if kind == "etcd":
        server: Etcd = request.getfixturevalue(ON_ETCD)
        settings = EtcdSettings(endpoints=tuple(server.endpoints), prefix=f"/{secrets.token_hex(6)}")

    @asynccontextmanager
    async def opened() -> AsyncIterator[Store]:
        store: Store
        if settings:
            store = await EtcdStore.open(settings)
        else:
            store = MemoryStore() if kind == "memory" else await SqliteStore.open(tmp_path / "store.db")
        try:
            yield store
        finally:
            await store.aclose()

    return opened
