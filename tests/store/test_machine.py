"""Any sequence of calls is answered by SQLite and by etcd as it is by memory, but for the numbers themselves."""

import asyncio
import secrets
import tempfile
from collections.abc import Callable, Coroutine, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from situate.store.contract import Store
from situate.store.entries import Batch, Entry, LeaseId, Revision
from situate.store.errors import StoreError
from situate.store.etcd.settings import EtcdSettings
from situate.store.etcd.store import EtcdStore
from situate.store.memory import MemoryStore
from situate.store.sqlite.store import SqliteStore
from situate.store.transactions import At, Committed, Delete, Guard, Holds, Outcome, Present, Put, Write
from store.etcd_server import Etcd
from store.stories import Follower

KEYS = ["/a/1", "/a/2", "/a/é", "/b/1", "/c"]
VALUES = [b"", b"x", b"\0\xff" * 50]
PREFIXES = ["", "/", "/a/", "/a/1", "/c", "/nothing"]
PHASES = (Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink)
T = TypeVar("T")

keys = st.sampled_from(KEYS)
values = st.sampled_from(VALUES)
# Which of the revisions so far, counted from the newest.
backs = st.integers(0, 4)


class Both(RuleBasedStateMachine):
    """The same calls to two stores. Where a call names a revision, each store gets its own of that moment."""

    opened: Callable[[], Coroutine[Any, Any, Store]]

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.model: Store = MemoryStore()
        self.real = self.run(type(self).opened())
        start = self.run(self.model.revision()), self.run(self.real.revision())
        self.moments: list[tuple[Revision, Revision]] = [start]
        self.leases: list[tuple[LeaseId, LeaseId]] = []
        self.compacted = 0

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(call)

    def both(self, call: Callable[[Store, int], Coroutine[Any, Any, T]]) -> tuple[T | str, T | str]:
        async def answered(store: Store, which: int) -> T | str:
            try:
                return await call(store, which)
            except StoreError as error:
                return type(error).__name__

        return self.run(answered(self.model, 0)), self.run(answered(self.real, 1))

    def plain(self, found: Any, which: int) -> Any:
        """With the place of a moment instead of a revision."""
        places = {moment[which]: place for place, moment in enumerate(self.moments)}
        match found:
            case Entry():
                leases = [0, *(lease[which] for lease in self.leases)]
                created, modified = places[found.created], places[found.modified]
                return found.key, found.value, created, modified, leases.index(found.lease)
            case Batch():
                told = [(e.key, self.plain(e.entry, which), self.plain(e.before, which)) for e in found.events]
                return places[found.revision], told
            case tuple() | list():
                return [self.plain(each, which) for each in found]
            case _:
                return found

    # -- writing -------------------------------------------------------------------------------------------------

    @rule(data=st.data(), guarded=st.lists(keys, max_size=2), written=st.lists(keys, max_size=3, unique=True))
    def commit(self, data: st.DataObject, guarded: list[str], written: list[str]) -> None:
        guards = [data.draw(self.guard(key)) for key in guarded]
        writes = [data.draw(self.write(key)) for key in written]

        async def call(store: Store, which: int) -> Outcome:
            return await store.commit([guard(which) for guard in guards], [write(which) for write in writes])

        model, real = self.both(call)
        if isinstance(model, str) or isinstance(real, str):
            assert model == real
            return
        assert type(model) is type(real)
        if isinstance(model, Committed):
            if model.revision > self.moments[-1][0]:
                assert real.revision > self.moments[-1][1]
                self.moments.append((model.revision, real.revision))
        elif not isinstance(real, Committed):
            assert self.plain(model.found, 0) == self.plain(real.found, 1)
            assert [guard.key for guard in model.failed] == [guard.key for guard in real.failed]

    def guard(self, key: str) -> st.SearchStrategy[Callable[[int], Guard]]:
        def at(back: int) -> Callable[[int], Guard]:
            moment = self.moments[max(0, len(self.moments) - 1 - back)]
            return lambda which: At(key, moment[which])

        absent: Callable[[int], Guard] = lambda _which: At(key, Revision(0))  # noqa: E731
        present: Callable[[int], Guard] = lambda _which: Present(key)  # noqa: E731
        held = values.map(lambda value: lambda _which: Holds(key, value))
        return st.one_of(backs.map(at), st.just(absent), st.just(present), held)

    def write(self, key: str) -> st.SearchStrategy[Callable[[int], Write]]:
        leases = [(LeaseId(0), LeaseId(0)), *self.leases]
        put = st.tuples(values, st.sampled_from(leases)).map(
            lambda drawn: lambda which: Put(key, drawn[0], drawn[1][which])
        )
        gone: Callable[[int], Write] = lambda _which: Delete(key)  # noqa: E731
        return st.one_of(put, st.just(gone))

    @precondition(lambda self: len(self.leases) < 2)
    @rule()
    def grant(self) -> None:
        async def call(store: Store, _which: int) -> LeaseId:
            return await store.grant(600)

        model, real = self.both(call)
        assert not isinstance(model, str)
        assert not isinstance(real, str)
        self.leases.append((model, real))

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def revoke(self, data: st.DataObject) -> None:
        lease = data.draw(st.sampled_from(self.leases))

        async def call(store: Store, which: int) -> Revision:
            await store.revoke(lease[which])
            return await store.revision()

        model, real = self.both(call)
        assert not isinstance(model, str)
        assert not isinstance(real, str)
        if model > self.moments[-1][0]:
            self.moments.append((model, real))

    @rule(back=backs)
    def compact(self, back: int) -> None:
        place = max(0, len(self.moments) - 1 - back)

        async def call(store: Store, which: int) -> None:
            await store.compact(self.moments[place][which])

        model, real = self.both(call)
        assert model == real
        self.compacted = max(self.compacted, place)

    # -- reading -------------------------------------------------------------------------------------------------

    @rule(prefix=st.sampled_from(PREFIXES), back=st.none() | backs, after=st.just("") | keys, limit=st.integers(0, 3))
    def scan(self, prefix: str, back: int | None, after: str, limit: int) -> None:
        async def call(store: Store, which: int) -> tuple[Any, int]:
            at = None if back is None else self.moments[max(0, len(self.moments) - 1 - back)][which]
            page = await store.scan(prefix, at=at, after=after, limit=limit)
            return page.entries, page.remaining

        self.same(call)

    @rule(wanted=st.lists(keys, min_size=1), back=st.none() | backs)
    def read(self, wanted: list[str], back: int | None) -> None:
        async def call(store: Store, which: int) -> tuple[Any, ...]:
            at = None if back is None else self.moments[max(0, len(self.moments) - 1 - back)][which]
            return (await store.read(wanted, at)).entries

        self.same(call)

    @rule(prefix=st.sampled_from(PREFIXES), data=st.data())
    def watch(self, prefix: str, data: st.DataObject) -> None:
        place = data.draw(st.integers(self.compacted, len(self.moments) - 1))

        async def call(store: Store, which: int) -> list[Batch]:
            after = self.moments[place][which]
            follower = Follower((await store.scan(prefix, at=after)).entries, after)
            async with aclosing(store.watch(prefix, after)) as watch:
                await watch.ask_progress()
                while follower.revision < self.moments[-1][which]:
                    follower.take(await anext(watch))
            return follower.batches

        self.same(call)

    def same(self, call: Callable[[Store, int], Coroutine[Any, Any, Any]]) -> None:
        model, real = self.both(call)
        assert self.plain(model, 0) == self.plain(real, 1)

    @invariant()
    def the_same_stands_there(self) -> None:
        async def call(store: Store, _which: int) -> tuple[Entry, ...]:
            return (await store.scan("")).entries

        self.same(call)

    def teardown(self) -> None:
        self.run(self.model.aclose())
        self.run(self.real.aclose())
        self.runner.close()


def compare(opened: Callable[[], Coroutine[Any, Any, Store]], examples: int, phases: Sequence[Phase] = PHASES) -> None:
    machine = type("Compared", (Both,), {"opened": staticmethod(opened)})
    chosen = settings(max_examples=examples, stateful_step_count=30, phases=phases)
    run_state_machine_as_test(machine, settings=chosen)


def test_sqlite_answers_as_memory_does(tmp_path: Path) -> None:
    async def opened() -> Store:
        return await SqliteStore.open(Path(tempfile.mkdtemp(dir=tmp_path)) / "store.db")

    compare(opened, 25)


def test_etcd_answers_as_memory_does(etcd_server: Etcd) -> None:
    async def opened() -> Store:
        return await EtcdStore.open(
            EtcdSettings(endpoints=tuple(etcd_server.endpoints), prefix=f"/{secrets.token_hex(6)}")
        )

    compare(opened, 25)


def test_the_comparison_can_fail() -> None:
    """A store that forgets a guard, now and then, is found out."""

    class Careless(MemoryStore):
        async def commit(self, guards: Any, writes: Any) -> Outcome:
            return await super().commit(list(guards)[1:], writes)

    async def opened() -> Store:
        return Careless()

    with pytest.raises(AssertionError):
        compare(opened, 50, [Phase.generate])
