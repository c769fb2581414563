"""Break etcd and the servers on it, one fault after another, under load: `make etcd-faults`.

Two worlds: one etcd with one server, and three members with two servers. Each fault is a line of a table: for how long
a writer got no answer, how soon after the fault's end each server took a write and had a pod bound, what was lost,
missed or repeated, pods that nobody asked for, nodes that were given up.
"""

import argparse
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kubernetes.fault_load import DEPLOYMENTS, FAILURES, JOBS, MERGE, PODS, SCALED, Load, Requests, finished
from kubernetes.fault_world import FaultWorld, ShiftableServer, frozen
from kubernetes.objects import pod
from kubernetes.own_cluster import OwnCluster
from kubernetes.parts import wait_until

BACK_S = 10.0
"""Every server must be back this soon after the fault's end."""
GIVE_UP_S = 60.0
SETTLE_S = 30.0
KILLED_S = 20.0
"""How long what was killed stays away: longer than a lease."""
PAUSED_S = 25.0
CALM_S = 4.0
BURST = 60
"""Pods that a server is asked for just before it is frozen."""
BURST_S = 0.15
HOUR_S = 3_600


@dataclass(frozen=True)
class Fault:
    """`do` returns when the fault has ended."""

    name: str
    members: int
    do: Callable[[FaultWorld], None]


@dataclass
class Row:
    fault: str
    outage_s: float = 0.0
    back_s: float = 0.0
    lost: int = 0
    missed: int = 0
    repeated: int = 0
    excess: list[str] = field(default_factory=list)
    given_up: list[str] = field(default_factory=list)
    down: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        return self.back_s <= BACK_S and not (self.lost or self.missed or self.repeated) and not self.problems()

    def problems(self) -> list[str]:
        return [*self.down, *self.excess, *(f"node {name} was given up" for name in self.given_up)]

    def line(self) -> str:
        verdict = "ok" if self.good else "FAILED"
        counts = f"{self.lost:>5} {self.missed:>7} {self.repeated:>9} {len(self.excess):>7} {len(self.given_up):>6}"
        return f"{self.fault:<40} {self.outage_s:>7.1f} {self.back_s:>7.1f} {counts}  {verdict}"


HEADER = (
    f"{'fault':<40} {'out s':>7} {'back s':>7} {'lost':>5} {'missed':>7} {'repeated':>9} {'excess':>7} {'nodes':>6}"
)


# -- faults of etcd ----------------------------------------------------------------------------------------------------


def only_member(_world: FaultWorld) -> list[int]:
    return [0]


def _leader(world: FaultWorld) -> list[int]:
    return [world.leader()]


def _follower(world: FaultWorld) -> list[int]:
    """One that a server is connected to."""
    leader = world.leader()
    return [next(number for number in range(len(world.servers)) if number != leader)]


def _majority(world: FaultWorld) -> list[int]:
    return [*_leader(world), *_follower(world)]


def killed(which: Callable[[FaultWorld], list[int]], away_s: float = KILLED_S) -> Callable[[FaultWorld], None]:
    def do(world: FaultWorld) -> None:
        chosen = which(world)
        for number in chosen:
            world.etcd.members[number].kill()
        time.sleep(away_s)
        for number in chosen:
            world.etcd.members[number].start()
        for number in chosen:
            world.answers(number)

    return do


def restarted(which: Callable[[FaultWorld], list[int]]) -> Callable[[FaultWorld], None]:
    def do(world: FaultWorld) -> None:
        for number in which(world):
            world.etcd.members[number].stop()
            world.etcd.members[number].start()
            world.answers(number)

    return do


def freeze(which: Callable[[FaultWorld], list[int]], seconds: float) -> Callable[[FaultWorld], None]:
    def do(world: FaultWorld) -> None:
        members = [world.etcd.members[number] for number in which(world)]
        for member in members:
            member.signal(signal.SIGSTOP)
        time.sleep(seconds)
        for member in members:
            member.signal(signal.SIGCONT)

    return do


def full(seconds: float = KILLED_S) -> Callable[[FaultWorld], None]:
    def do(world: FaultWorld) -> None:
        world.alarm("ACTIVATE")
        time.sleep(seconds)
        world.compact()
        world.defragment()
        world.alarm("DEACTIVATE")

    return do


# -- faults of servers -------------------------------------------------------------------------------------------------


def _leading(world: FaultWorld) -> OwnCluster:
    return world.leading()


def _standing_by(world: FaultWorld) -> OwnCluster:
    return world.standing_by()


def server_killed(which: Callable[[FaultWorld], OwnCluster]) -> Callable[[FaultWorld], None]:
    def do(world: FaultWorld) -> None:
        server = which(world)
        world.all_up(but=server)
        server.kill_apiserver()
        time.sleep(CALM_S)
        server.start_apiserver()
        world.all_up()

    return do


def server_frozen(
    which: Callable[[FaultWorld], OwnCluster], seconds: float = PAUSED_S, *, compact: bool = False
) -> Callable[[FaultWorld], None]:
    def do(world: FaultWorld) -> None:
        server = which(world)
        world.all_up(but=server)
        requests = Requests(server)
        requests.ask("PATCH", f"{DEPLOYMENTS}/{SCALED}", {"spec": {"replicas": BURST}}, MERGE)
        requests.close()
        time.sleep(BURST_S)  # its controllers, if it leads, are in the middle of making them
        if compact:
            behind = threading.Timer(CALM_S, world.compact_behind)
            behind.start()
        frozen(server.apiserver, seconds)
        world.all_up()

    return do


def clock_shifted(which: Callable[[FaultWorld], OwnCluster], seconds: int) -> Callable[[FaultWorld], None]:
    def do(world: FaultWorld) -> None:
        server = which(world)
        if not isinstance(server, ShiftableServer):
            raise TypeError("its clock cannot be shifted")
        server.shift_clock(seconds)
        time.sleep(PAUSED_S)
        server.shift_clock(0)

    return do


FAULTS: Sequence[Fault] = (
    Fault("etcd killed", 1, killed(only_member)),
    Fault("etcd restarted", 1, restarted(only_member)),
    *(Fault(f"etcd frozen {seconds} s", 1, freeze(only_member, seconds)) for seconds in (15, 30, 90)),
    Fault("history compacted", 1, FaultWorld.compact),
    Fault("defragmented", 1, FaultWorld.defragment),
    Fault("no space", 1, full()),
    Fault("server killed", 1, server_killed(_leading)),
    Fault("server frozen", 1, server_frozen(_leading)),
    Fault("clock of server +1 h", 1, clock_shifted(_leading, HOUR_S)),
    Fault("clock of server -1 h", 1, clock_shifted(_leading, -HOUR_S)),
    Fault("leader killed", 3, killed(_leader)),
    Fault("follower killed", 3, killed(_follower)),
    Fault("majority killed", 3, killed(_majority)),
    Fault("leader restarted", 3, restarted(_leader)),
    *(Fault(f"leader frozen {seconds} s", 3, freeze(_leader, seconds)) for seconds in (15, 30, 90)),
    *(Fault(f"follower frozen {seconds} s", 3, freeze(_follower, seconds)) for seconds in (15, 30)),
    *(Fault(f"majority frozen {seconds} s", 3, freeze(_majority, seconds)) for seconds in (15, 30)),
    Fault("history compacted, three members", 3, FaultWorld.compact),
    Fault("defragmented, three members", 3, FaultWorld.defragment),
    Fault("no space, three members", 3, full()),
    Fault("leading server killed", 3, server_killed(_leading)),
    Fault("standby server killed", 3, server_killed(_standing_by)),
    Fault("leading server frozen", 3, server_frozen(_leading)),
    Fault("standby server frozen", 3, server_frozen(_standing_by)),
    Fault("standby frozen, history compacted", 3, server_frozen(_standing_by, compact=True)),
    Fault("leading frozen, history compacted", 3, server_frozen(_leading, compact=True)),
    Fault("clock of leading server +1 h", 3, clock_shifted(_leading, HOUR_S)),
    Fault("clock of leading server -1 h", 3, clock_shifted(_leading, -HOUR_S)),
)


# -- one fault ---------------------------------------------------------------------------------------------------------


def play(world: FaultWorld, load: Load, fault: Fault) -> Row:
    """Perform a fault and check the outcome."""
    row = Row(fault.name)
    load.workloads.resting.clear()
    time.sleep(CALM_S)
    begun = time.monotonic()
    fault.do(world)
    ended = time.monotonic()
    row.back_s = _back(world, fault, ended, row)
    row.outage_s = load.longest_pause(begun, time.monotonic())
    time.sleep(CALM_S)
    load.workloads.resting.set()
    for server in world.servers:
        if not server.apiserver.running:
            row.down.append(f"{server.home.name} has ended\n{server.apiserver.tail()}")
            return row
    _settle(world, load, row)
    row.lost, row.missed, row.repeated = load.histories()
    row.excess += load.counts.excess()
    row.given_up = load.given_up()
    return row


def _back(world: FaultWorld, fault: Fault, ended: float, row: Row) -> float:
    """How long after the fault each server took a write and had a pod bound; the longest of all."""
    took: dict[str, float] = {}

    def probe(server: OwnCluster) -> None:
        requests, number = Requests(server), 0
        while time.monotonic() < ended + GIVE_UP_S:
            number += 1
            name = f"probe-{server.home.name}-{int(ended)}-{number}"
            try:
                requests.ask("POST", PODS, pod(name))
                until = time.monotonic() + BACK_S
                while time.monotonic() < until:
                    if requests.ask("GET", f"{PODS}/{name}")["spec"].get("nodeName"):
                        took[server.home.name] = time.monotonic() - ended
                        requests.ask("DELETE", f"{PODS}/{name}")
                        requests.close()
                        return
                    time.sleep(0.05)
            except FAILURES:
                requests.close()
                time.sleep(0.1)
        requests.close()

    threads = [threading.Thread(target=probe, args=(server,)) for server in world.servers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    row.down += [f"{one.home.name} is not back" for one in world.servers if one.home.name not in took]
    return max(took.values(), default=GIVE_UP_S) if len(took) == len(world.servers) else GIVE_UP_S


def _settle(world: FaultWorld, load: Load, row: Row) -> None:
    """Wait until everybody has what it asked for, and every watch has been told."""
    requests = Requests(world.servers[0])

    def at_rest() -> bool:
        try:
            pods = requests.ask("GET", PODS)["items"]
            alive = [one["metadata"]["labels"].get("app") for one in pods if one["metadata"].get("labels")]
            for one in requests.ask("GET", DEPLOYMENTS)["items"]:
                status = one.get("status", {})
                size = one["spec"]["replicas"]
                if not (alive.count(one["metadata"]["name"]) == status.get("readyReplicas", 0) == size):
                    return False
            jobs = requests.ask("GET", JOBS)["items"]
            for one in jobs:
                if finished(one) and one["status"].get("succeeded") != one["spec"]["completions"]:
                    row.excess.append(f"{one['metadata']['name']} succeeded {one['status'].get('succeeded')} times")
            return all(finished(one) for one in jobs) and load.caught_up()
        except FAILURES:
            requests.close()
            return False

    try:
        wait_until(at_rest, "pods as they are asked for, and all watches", SETTLE_S)
    except TimeoutError as error:
        row.down.append(str(error))
    finally:
        requests.close()


def run(members: int, servers: int, faults: Sequence[Fault], home: Path) -> list[Row]:
    rows: list[Row] = []
    with FaultWorld(home, members, servers) as world:
        load = Load(world.servers)
        load.begin()
        try:
            for fault in faults:
                row = play(world, load, fault)
                rows.append(row)
                print(row.line(), flush=True)
                for problem in row.problems()[:5]:
                    print(f"    {problem}", flush=True)
                if any("has ended" in problem for problem in row.down):
                    break
        finally:
            load.end()
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="faults whose name contains one of these words, with commas")
    parser.add_argument("--members", type=int, choices=(1, 3), help="only this world")
    parser.add_argument("--keep", type=Path, help="a folder for the logs")
    asked = parser.parse_args()
    words = asked.only.split(",")
    begun = time.monotonic()
    rows: list[Row] = []
    print(HEADER, flush=True)
    with tempfile.TemporaryDirectory(prefix="etcd-faults-") as folder:
        for members, servers in ((1, 1), (3, 2)):
            chosen = [one for one in FAULTS if one.members == members and any(word in one.name for word in words)]
            if chosen and asked.members in (None, members):
                rows += run(members, servers, chosen, (asked.keep or Path(folder)) / f"{members}-members")
    bad = sum(not row.good for row in rows)
    print(f"{len(rows)} faults in {time.monotonic() - begun:.0f} s, {bad} failed")
    return 1 if bad or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
