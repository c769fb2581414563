"""A fleet of schedulers under a steady load, while one after the other is killed and comes back.

    python tests/kubernetes/fleet.py --nodes 1000 --rate 300 --calm 30 --disturbed 90

Pods come at a steady rate all along. First nobody is disturbed; then a member is killed (SIGKILL) every so often, each
in its turn, and started again. Binds are counted by second, as the server noted them, and added up over every stretch
of WINDOW_S seconds: the fewest of any stretch while members were killed is held against the mean of the calm. The
witness of racing.py reads every revision: was a pod ever on two nodes, was a node ever overfull.
"""

import argparse
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import count
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from kubernetes import racing
from kubernetes.api import Json
from kubernetes.objects import node, pod
from kubernetes.own_cluster import OwnCluster
from kubernetes.parts import Part, wait_until
from kubernetes.racing import Outcome, Sizes, bound_at

NAMES = ("one", "two", "three")
WINDOW_S = 5
TICK_S = 0.1
POOL = "pool"
SETTLE_S = 60.0


@dataclass(frozen=True, slots=True)
class Plan:
    nodes: int = 60
    rate: int = 100
    """Pods a second."""
    calm_s: float = 8.0
    disturbed_s: float = 24.0
    kill_every_s: float = 8.0
    down_s: float = 0.0
    """How long one that was killed stays away before it is started again."""
    lease: str = "2s"
    flags: Sequence[str] = ()
    spare: float = 1.1
    """How many times as much room there is as is asked for."""

    @property
    def pods(self) -> int:
        return int(self.rate * (self.calm_s + self.disturbed_s))

    @property
    def slots(self) -> int:
        return -(-int(self.pods * self.spare) // self.nodes)


@dataclass(frozen=True, slots=True)
class Told:
    """What became of it."""

    plan: Plan
    outcome: Outcome
    kills: int
    calm_rate: float
    """Binds a second, while nobody was disturbed."""
    worst_rate: float
    """Of the worst stretch of WINDOW_S seconds while members were killed."""
    longest_wait_s: float
    """From a pod's creation to its bind, to the second."""
    made: int
    """How many pods there were in the end."""

    def text(self) -> str:
        return (
            f"{len(NAMES)} members, {self.plan.nodes} nodes, {self.plan.rate} pods/s, {self.kills} kills:"
            f" calm {self.calm_rate:.0f} binds/s, worst {WINDOW_S} s while killed {self.worst_rate:.0f}/s"
            f" ({100 * self.worst_rate / max(self.calm_rate, 1e-9):.0f} %), longest wait {self.longest_wait_s:.0f} s;"
            f" {self.outcome.bound} of {self.made} bound, moved {len(self.outcome.moved)},"
            f" binds to a full node {len(self.outcome.overfull)}, refused with 409: {self.outcome.refused}"
        )


class Load:
    """Creates pods at a steady rate, and catches up when it falls behind."""

    def __init__(self, cluster: OwnCluster, rate: int) -> None:
        self._cluster = cluster
        self._rate = rate
        self._names = count()
        self.made = 0

    def run(self, seconds: float, at: Sequence[tuple[float, Callable[[], object]]] = ()) -> None:
        """For so long; and do these things on the way, each at its time."""
        begun, base, left = time.monotonic(), self.made, sorted(at, key=lambda one: one[0])
        while (now := time.monotonic() - begun) < seconds:
            while left and left[0][0] <= now:
                left.pop(0)[1]()
            wanted = base + int(self._rate * now) - self.made
            if wanted > 0:
                self._cluster.create(*(pod(f"pod-{next(self._names)}", cpu="1", memory="1Mi") for _ in range(wanted)))
                self.made += wanted
            time.sleep(TICK_S)


def kill(part: Part) -> None:
    part.signal(signal.SIGKILL)
    part.wait()


def member(cluster: OwnCluster, name: str, plan: Plan) -> Part:
    return cluster.own_scheduler("--fleet", f"race/{name}", f"--leader-elect-lease-duration={plan.lease}", *plan.flags)


def run(folder: Path, plan: Plan) -> Told:
    with OwnCluster(folder) as cluster:
        pools = [{POOL: f"pool-{number % 5}"} for number in range(plan.nodes)]
        cluster.create(
            *(node(f"node-{n}", cpu=str(plan.slots), pods=plan.slots + 10, labels=pools[n]) for n in range(plan.nodes))
        )
        parts: list[Part] = racing.at_once(*(partial(member, cluster, name, plan) for name in NAMES))
        whole = f'members="{",".join(sorted(NAMES))}"'
        wait_until(lambda: all(whole in part.said() for part in parts), "all members to know of each other")
        refused = racing.conflicts(cluster)
        load = Load(cluster, plan.rate)
        calm = time.time(), time.time() + plan.calm_s
        load.run(plan.calm_s)
        kills = int(plan.disturbed_s / plan.kill_every_s)
        events: list[tuple[float, Callable[[], object]]] = []
        for number in range(kills):
            at, part = number * plan.kill_every_s, parts[number % len(parts)]
            events += [(at, partial(kill, part)), (at + plan.down_s, part.start)]
        disturbed = time.time(), time.time() + plan.disturbed_s
        load.run(plan.disturbed_s, events)
        wait_until(lambda: all("nodeName" in one["spec"] for one in cluster.pods()), "all pods to be bound", SETTLE_S)
        items = cluster.pods()
        outcome = Outcome(
            "situate", Sizes(plan.nodes, plan.slots), 0.0, len(items), refused=racing.conflicts(cluster) - refused
        )
    outcome = racing.judge(outcome, racing.from_sqlite(folder / "store.db"))
    binds = Counter(int(bound_at(one)) for one in items)
    return Told(
        plan,
        outcome,
        kills,
        _mean(binds, *calm),
        _worst(binds, *disturbed),
        max(bound_at(one) - _made_at(one) for one in items),
        load.made,
    )


def _made_at(item: Json) -> float:
    return datetime.fromisoformat(item["metadata"]["creationTimestamp"]).timestamp()


def _mean(binds: Counter[int], begun: float, ended: float) -> float:
    """A second that is not whole is left out."""
    seconds = range(int(begun) + 1, int(ended))
    return sum(binds[second] for second in seconds) / len(seconds)


def _worst(binds: Counter[int], begun: float, ended: float) -> float:
    stretches = range(int(begun) + 1, int(ended) - WINDOW_S + 1)
    return min(sum(binds[start + offset] for offset in range(WINDOW_S)) / WINDOW_S for start in stretches)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--rate", type=int, default=250, help="pods a second")
    parser.add_argument("--calm", type=float, default=30.0, help="seconds before the first kill")
    parser.add_argument("--disturbed", type=float, default=90.0, help="seconds of kills")
    parser.add_argument("--every", type=float, default=10.0, help="seconds between kills")
    parser.add_argument("--down", type=float, default=0.0, help="seconds before one that was killed is started again")
    parser.add_argument("--lease", default="5s")
    parser.add_argument("--pools", action="store_true", help="the members divide the nodes, too")
    parser.add_argument("--keep", type=Path, help="leave store and logs in this new folder")
    asked = parser.parse_args()
    flags = ["--pool-label", POOL] if asked.pools else []
    plan = Plan(asked.nodes, asked.rate, asked.calm, asked.disturbed, asked.every, asked.down, asked.lease, flags)
    with tempfile.TemporaryDirectory() as name:
        told = run(asked.keep or Path(name), plan)
    print(told.text())
    for line in [*told.outcome.moved, *told.outcome.overfull][:5]:
        print(f"  {line}")
    bad = told.outcome.moved or told.outcome.overfull or told.worst_rate < told.calm_rate / 2
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
