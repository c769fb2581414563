"""A disk that is full for a while under load, and then free again: nothing that was acknowledged is lost, no watch
misses anything, and nobody restarts the server.

`DISK_FULL_S=300` makes it five minutes. Then the figures are worth reading: pytest -s shows them.
"""

import asyncio
import os
import random
import time
from pathlib import Path

from server.faults.history import problems
from server.faults.load import Clients
from server.faults.process import Plane
from server.faults.small_disk import fill, small_disk
from server.faults.test_kill import WATCHES, Drill, until

FULL_S = float(os.environ.get("DISK_FULL_S", "4"))
AGAIN_S = 10.0


class FullDisk(Drill):
    def __init__(self, plane: Plane, disk: Path) -> None:
        super().__init__(plane)
        self.disk = disk
        self.acknowledged = self.refused = 0
        self.back_s = 0.0
        self.probes = 0
        self.codes: list[int] = []

    async def probe(self, clients: Clients) -> None:
        """A small update, as of a lease. It works as long as nobody takes away what the reserve gave up."""
        path = "/api/v1/namespaces/kube-system/configmaps/probe"
        self.probes += 1
        code, body = await clients.ask("PUT", path, {"metadata": {"name": "probe"}, "data": {"n": f"{self.probes:09}"}})
        assert code in (200, 507), body
        self.codes.append(code)

    async def disturb(self, clients: Clients, kills: int, dice: random.Random) -> None:
        await self.load(clients, 200)
        body = {"metadata": {"name": "probe"}, "data": {"n": f"{0:09}"}}
        code, _ = await clients.ask("POST", "/api/v1/namespaces/kube-system/configmaps", body)
        assert code == 201
        filler = await asyncio.to_thread(fill, self.disk)
        before = clients.acknowledged
        await until(lambda: clients.full > 0, "a write to be refused")
        began = time.monotonic()
        while time.monotonic() < began + FULL_S:
            await asyncio.sleep(0.2)
            await self.probe(clients)
            if time.monotonic() > began + FULL_S / 2:
                await asyncio.to_thread(fill, self.disk, "more")  # whatever anybody gave back
        self.acknowledged, self.refused = clients.acknowledged - before, clients.full
        for name in (filler, self.disk / "more"):
            name.unlink()
        began = time.monotonic()
        creates = sum(write.kind == "create" and write.outcome == "acknowledged" for write in clients.writes)
        await until(
            lambda: sum(one.kind == "create" and one.outcome == "acknowledged" for one in clients.writes) > creates,
            "an object to be created again",
        )
        self.back_s = time.monotonic() - began
        await self.load(clients, 200)


def test_a_disk_that_was_full_lost_nothing(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "64m") as disk, Plane(disk / "plane", log=tmp_path) as plane:
        pid = plane.pid
        drill = FullDisk(plane, disk)
        clients = asyncio.run(drill.run(0))
        assert not clients.odd
        assert problems(clients.watches, clients.writes, clients.reads) == []
        assert [watch.expired for watch in clients.watches] == [0] * WATCHES
        assert "Traceback" not in plane.said()
        assert plane.running
        assert plane.pid == pid
        assert drill.back_s < AGAIN_S
        # Small updates went on all the time; in the second half, somebody took what the reserve gave up.
        assert set(drill.codes[: len(drill.codes) // 3]) == {200}
    print(
        f"\nfull for {FULL_S:.0f} s: {drill.acknowledged} writes acknowledged meanwhile, {drill.refused} refused; "
        f"{drill.codes.count(200)} of {drill.probes} renewals; "
        f"creates work again {drill.back_s:.1f} s after there is room; {clients.acknowledged} acknowledged in all"
    )
