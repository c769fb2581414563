"""The power goes at any moment; what was acknowledged is there afterwards, and the file is whole.

Killing a process proves nothing about this, as the kernel still has what it wrote.
"""

import random
from collections.abc import Callable

import apsw
import pytest

from situate.store.entries import Revision
from situate.store.sqlite import log as log_module
from situate.store.sqlite.log import TransactionLog
from situate.store.sqlite.queries import scan
from situate.store.sqlite.schema import prepare
from situate.store.transactions import Committed, Delete, Put, Transaction
from store.disk import Disk

SEEDS = 800
PARTS = 4
COMMITS = 14
KEYS = 12

State = dict[str, bytes]


def transaction(dice: random.Random, step: int) -> Transaction:
    keys = dice.sample(range(KEYS), dice.randint(1, 3))
    return Transaction(
        (),
        tuple(
            Delete(f"/{key}") if dice.random() < 0.2 else Put(f"/{key}", b"%d " % step * dice.randint(1, 400))
            for key in keys
        ),
    )


def after(state: State, transactions: list[Transaction]) -> State:
    state = dict(state)
    for asked in transactions:
        for write in asked.writes:
            if isinstance(write, Put):
                state[write.key] = write.value
            else:
                state.pop(write.key, None)
    return state


class World:
    """A disk, what was acknowledged, and what was under way when the power went."""

    def __init__(self, seed: int, weaken: Callable[[apsw.Connection], None]) -> None:
        self.dice = random.Random(seed)
        self.weaken = weaken
        self.disk = Disk()
        self.acknowledged: State = {}
        self.revision = Revision(1)
        self.under_way: list[Transaction] = []

    def live_until_power_loss(self) -> None:
        left = self.dice.randint(1, 380)

        def count(_operation: str) -> None:
            nonlocal left
            left -= 1
            self.disk.dead = left <= 0

        self.disk.before = count
        connection = self.disk.connect()
        prepare(connection)
        self.weaken(connection)
        log = TransactionLog(connection)
        for step in range(COMMITS):
            self.write(log, step)
            if self.disk.dead:
                break
        self.disk.dead = True
        connection.close(True)

    def write(self, log: TransactionLog, step: int) -> None:
        self.under_way = [transaction(self.dice, step) for _ in range(self.dice.randint(1, 5))]
        answers, _ = log.commit(self.under_way)
        if self.disk.dead:
            return  # nobody is left to acknowledge anything
        self.acknowledged = after(self.acknowledged, self.under_way)
        self.under_way = []
        for answer in answers:
            assert isinstance(answer, Committed)
            assert answer.revision >= self.revision
            self.revision = answer.revision
        log.checkpoint()
        if self.dice.random() < 0.2:
            log.compact(self.revision)
            while log.sweep():
                pass

    def check(self) -> None:
        """Opening includes SQLite's own check of the file, and that of our tables."""
        disk = Disk(self.disk.after_power_loss(self.dice))
        connection = disk.connect()
        try:
            prepare(connection)
            log = TransactionLog(connection)
            page = scan(connection, "", None, "", 0)
            found = {entry.key: entry.value for entry in page.entries}
            assert found in (self.acknowledged, after(self.acknowledged, self.under_way))
            assert page.revision == log.revision >= self.revision
            (answer,), _ = log.commit([Transaction((), (Put("/new", b""),))])
            assert isinstance(answer, Committed)
            assert answer.revision > self.revision
        finally:
            connection.close(True)


def as_it_is(_connection: apsw.Connection) -> None:
    pass


@pytest.fixture(autouse=True)
def _small_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a few commits bring about checkpoints and several sweeps."""
    monkeypatch.setattr(log_module, "CHECKPOINT_PAGES", 12)
    monkeypatch.setattr(log_module, "SWEEP_ROWS", 5)


@pytest.mark.parametrize("part", range(PARTS))
def test_no_acknowledged_write_is_lost_and_the_file_is_whole(part: int) -> None:
    for seed in range(part, SEEDS, PARTS):
        world = World(seed, as_it_is)
        world.live_until_power_loss()
        try:
            world.check()
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise


@pytest.mark.parametrize("level", ["NORMAL", "OFF"])
def test_this_would_be_found_out_if_commits_were_not_synced(level: str) -> None:
    def weaken(connection: apsw.Connection) -> None:
        connection.execute(f"PRAGMA synchronous = {level}")

    def loses(seed: int) -> bool:
        world = World(seed, weaken)
        world.live_until_power_loss()
        try:
            world.check()
        except AssertionError:
            return True
        return False

    assert any(loses(seed) for seed in range(60))
