"""Faults on a real API server, seen by a witness of its own (history.py).

Whatever breaks, no pod is lost, none is bound twice, no node is overfull at any revision, and none is left waiting that
fits.

`make fault-test` runs the long forms: more pods, leases of the usual length, ten kills.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count

import pytest

from kubernetes.cluster import Cluster, Scheduler, answers
from kubernetes.drills import FAST, LONG, WITHIN_S, behind, crowd, limit, quiet_logs, until_bound, until_settled
from kubernetes.history import History
from kubernetes.objects import GROUP_CONDITION, GROUPS_API, Json, pod, pod_group
from kubernetes.parts import wait_until
from kubernetes.proxy import BINDS, POD_DELETES, POD_PATCHES, Fault, FaultProxy, Faults

PODS, NODES = (1500, 200) if LONG else (400, 50)
KILLS, STOPS = (10, 5) if LONG else (3, 3)
# Lease duration, renew deadline, retry period; the long form has kube-scheduler's own.
LEASE_S, RENEW_S, RETRY_S = (15.0, 10.0, 2.0) if LONG else (4.0, 3.0, 0.5)
AFTER_EXPIRY_S, AFTER_RELEASE_S = 2.0, 2.0
TRICKLE_S = 0.1
GANG_LIMIT_S = 300.0

# Slow enough to be caught in the middle: a drain takes five seconds or more.
STEADY: Json = {"clientConnection": {"qps": PODS // 5, "burst": 20}}
# After the first 20, a write every tenth of a second: a process can be stopped between two of them.
APART: Json = {"clientConnection": {"qps": 10, "burst": 20}}
BETWEEN_S = 0.03


@pytest.fixture
def history(cluster: Cluster) -> Iterator[History]:
    with History(cluster) as witness:
        yield witness


def elected(config: Json) -> Json:
    times = {"leaseDuration": f"{LEASE_S:g}s", "renewDeadline": f"{RENEW_S:g}s", "retryPeriod": f"{RETRY_S:g}s"}
    return {**config, "leaderElection": {"leaderElect": True, **times}}


def tight(number: int) -> str:
    """The CPUs of each of NODES nodes, so that so many pods of one CPU just fit: a node given twice would show."""
    return str(-(-number // NODES))


# ── the witness itself ──────────────────────────────────────────────────────────────────────────────────────────────


def test_the_witness_notices_an_overfull_node_and_a_pod_that_waits_in_vain(cluster: Cluster, history: History) -> None:
    cluster.hollow_nodes(2, cpu="2")
    crowd(cluster, "a", 4)
    pods = f"/api/v1/namespaces/{cluster.namespace}/pods"
    binding: Json = {"apiVersion": "v1", "kind": "Binding", "target": {"kind": "Node", "name": "node-0"}}
    for name in ("a-0", "a-1"):
        cluster.api.post(f"{pods}/{name}/binding", {**binding, "metadata": {"name": name}})
    assert history.problems() == []
    assert history.waiting_though_they_fit() == [f"{cluster.namespace}/a-2", f"{cluster.namespace}/a-3"]
    cluster.api.post(f"{pods}/a-2/binding", {**binding, "metadata": {"name": "a-2"}})
    [problem] = history.problems()
    assert problem.startswith(f"node-0 was overfull with {cluster.namespace}/a-2 at revision ")
    cluster.api.delete(f"{pods}/a-0")
    history.catch_up()
    assert history.gone() == {f"{cluster.namespace}/a-0"}
    assert [bound.node for bound in history.binds()] == ["node-0"] * 3


# ── the API server and its watches ──────────────────────────────────────────────────────────────────────────────────


def test_the_api_server_is_killed_in_the_middle_of_a_drain(cluster: Cluster, history: History) -> None:
    cluster.hollow_nodes(NODES, cpu=tight(PODS))
    pods = crowd(cluster, "a", PODS)
    scheduler = cluster.situate(STEADY)
    for done in (PODS // 5, PODS // 2) if LONG else (PODS // 4,):
        until_bound(history, done)
        cluster.kill_apiserver()
        assert len(history.binds()) < PODS, "too late: all was done"
        cluster.start_apiserver()
    until_settled(history, pods)
    assert history.gone() == set()
    quiet_logs(scheduler)


def test_history_is_compacted_under_the_watches(cluster: Cluster, history: History) -> None:
    """While they are cut, pods go and come; when they resume, what they resume from is forgotten (410)."""
    cluster.hollow_nodes(NODES, cpu="4")
    with FaultProxy(cluster, seed=1) as proxy:
        scheduler = behind(cluster, proxy, FAST, "-v=4")
        first = crowd(cluster, "a", NODES * 2)
        until_settled(history, first)

        proxy.set(Faults(refuse=True))
        away = sorted(first)[: NODES // 2]
        for name in away:
            cluster.api.delete(f"/api/v1/namespaces/{cluster.namespace}/pods/{name.partition('/')[2]}")
        second = crowd(cluster, "b", NODES)
        history.catch_up()
        cluster.compact_etcd()
        cluster.restart_apiserver()
        proxy.set(Faults())

        until_settled(history, (first | second) - set(away))
        # What takes all the room that is left fits only if the deleted ones are known to be gone.
        room = NODES * 4 - len(history.pods())
        until_settled(history, crowd(cluster, "c", room))
    assert 'kind="pods" err="too old resource version: ' in scheduler.said(), "nothing that was asked for was too old"
    assert history.gone() == set(away)
    quiet_logs(scheduler)


def until_cut(proxy: FaultProxy, times: int) -> None:
    wait_until(lambda: proxy.counts.watches_cut >= times, "a watch to be cut", WITHIN_S)


def test_watches_are_cut_every_second_while_pods_come_and_go(cluster: Cluster, history: History) -> None:
    cluster.hollow_nodes(20, cpu="4")
    rounds, size = (30, 40) if LONG else (6, 40)
    with FaultProxy(cluster, seed=2) as proxy:
        proxy.set(Faults(cut_watches_after_s=1.0))
        scheduler = behind(cluster, proxy, FAST)
        last: set[str] = set()
        away: set[str] = set()
        for turn in range(rounds):
            new = crowd(cluster, f"turn-{turn}", size)
            until_settled(history, new)
            # 80 CPUs: the next 40 fit only when these are known to be gone.
            for name in sorted(last):
                cluster.api.delete(f"/api/v1/namespaces/{cluster.namespace}/pods/{name.partition('/')[2]}")
            away |= last
            last = new
            until_cut(proxy, proxy.counts.watches_cut + 1)
        assert proxy.counts.watches_cut > rounds
    assert history.gone() == away
    quiet_logs(scheduler)


# ── requests that fail ──────────────────────────────────────────────────────────────────────────────────────────────

SPOILED = {
    "a fifth of binds is refused with 409 or 500": (Fault(BINDS, 0.1, 409), Fault(BINDS, 0.1, 500)),
    "a fifth of binds is carried out and answered with 409 or 500": (
        Fault(BINDS, 0.1, 409, forwarded=True),
        Fault(BINDS, 0.1, 500, forwarded=True),
    ),
    "a fifth of binds breaks the connection before or after it is carried out": (
        Fault(BINDS, 0.1, 0),
        Fault(BINDS, 0.1, 0, forwarded=True),
    ),
    "a tenth of binds is answered with 429 and one of fifty with 503 and Retry-After": (
        Fault(BINDS, 0.1, 429, retry_after_s=1),
        Fault(BINDS, 0.02, 503, retry_after_s=1),
    ),
}


@pytest.mark.parametrize("faults", SPOILED.values(), ids=SPOILED.keys())
def test_binds_that_fail_are_made_once_in_the_end(
    cluster: Cluster, history: History, faults: tuple[Fault, ...]
) -> None:
    number = PODS if LONG else PODS // 2
    cluster.hollow_nodes(NODES, cpu=tight(number))
    with FaultProxy(cluster, seed=3) as proxy:
        proxy.set(Faults(answers=faults))
        pods = crowd(cluster, "a", number)
        scheduler = behind(cluster, proxy, FAST)
        until_settled(history, pods)
        spoiled = sum((proxy.counts.answered + proxy.counts.lost).values())
        assert spoiled >= number * sum(fault.share for fault in faults) * 0.5
    assert history.gone() == set()
    quiet_logs(scheduler)


def test_victims_go_and_their_room_is_used_though_deletes_and_patches_fail(cluster: Cluster, history: History) -> None:
    cluster.hollow_nodes(10, cpu="2")
    cluster.kwok()
    cluster.create_priority_classes(low=100, high=1000)
    with FaultProxy(cluster, seed=4) as proxy:
        scheduler = behind(cluster, proxy, FAST)
        low = crowd(cluster, "low", 20, priorityClassName="low", terminationGracePeriodSeconds=1)
        until_settled(history, low)
        proxy.set(
            Faults(
                answers=(
                    Fault(POD_DELETES, 0.2, 500),
                    Fault(POD_DELETES, 0.2, 0, forwarded=True),
                    Fault(POD_PATCHES, 0.2, 500),
                    Fault(POD_PATCHES, 0.2, 409),
                )
            )
        )
        high = crowd(cluster, "high", 8, priorityClassName="high")
        until_settled(history, high)
    assert len(history.gone()) == 8, "more or fewer had to go than needed"
    assert history.gone() <= low
    quiet_logs(scheduler)


# ── leaders ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def trickle(cluster: Cluster) -> Iterator[Callable[[], set[str]]]:
    """A pod now and again, for as long as this lasts; what is given returns the names of all so far."""
    made: set[str] = set()
    over = threading.Event()

    def work() -> None:
        for number in count():
            cluster.create(pod(f"trickle-{number}", cpu="10m", memory="1Mi"))
            made.add(f"{cluster.namespace}/trickle-{number}")
            if over.wait(TRICKLE_S):
                return

    thread = threading.Thread(target=work, name="trickle")
    thread.start()
    try:
        yield lambda: set(made)
    finally:
        over.set()
        thread.join()


def leads(cluster: Cluster, scheduler: Scheduler) -> bool:
    if not scheduler.running:
        return False
    shown = scheduler.get("/metrics", token=cluster.tokens["admin"])
    return 'leader_election_master_status{name="kube-scheduler"} 1.0' in shown


def leader_of(cluster: Cluster, replicas: list[Scheduler]) -> Scheduler:
    found: list[Scheduler] = []

    def look() -> bool:
        found[:] = [one for one in replicas if leads(cluster, one)]
        return len(found) == 1

    wait_until(look, "a leader", WITHIN_S)
    return found[0]


def again(scheduler: Scheduler) -> None:
    scheduler.start(lambda: answers(f"{scheduler.url}/readyz"))


def next_bind_after(history: History, do: Callable[[], None]) -> float:
    """Do something to the leader; how many seconds later somebody else, who holds the lease, has bound a pod."""
    last = history.held()[-1].revision
    found: list[float] = []

    def bound() -> bool:
        taken = next((one.revision for one in history.held() if one.revision > last and one.holder), None)
        if taken is not None:
            found[:] = [one.at for one in history.binds() if one.revision > taken][:1]
        return bool(found)

    begun = time.monotonic()
    do()
    wait_until(bound, "a bind by another leader", WITHIN_S)
    return found[0] - begun


def test_a_leader_that_is_killed_is_followed_when_its_lease_is_over(cluster: Cluster, history: History) -> None:
    cluster.hollow_nodes(10, cpu="64", pods=2000)
    replicas = [cluster.situate(elected(FAST)) for _ in range(3 if LONG else 2)]
    took: list[float] = []
    with trickle(cluster) as made:
        until_bound(history, 1)
        for _ in range(KILLS):
            leader = leader_of(cluster, replicas)
            took.append(next_bind_after(history, leader.kill))
            again(leader)
        pods = made
    until_settled(history, pods())
    print("seconds from each kill to the next bind:", [round(one, 1) for one in took])
    assert max(took) <= LEASE_S + limit(AFTER_EXPIRY_S)
    quiet_logs(*replicas)


def test_a_leader_that_is_stopped_is_followed_at_once(cluster: Cluster, history: History) -> None:
    cluster.hollow_nodes(10, cpu="64", pods=2000)
    replicas = [cluster.situate(elected(FAST)) for _ in range(2)]
    took: list[float] = []
    codes: list[int | None] = []
    with trickle(cluster) as made:
        until_bound(history, 1)
        for _ in range(STOPS):
            leader = leader_of(cluster, replicas)
            took.append(next_bind_after(history, partial(leader.signal, signal.SIGTERM)))
            codes.append(leader.wait())
            again(leader)
        pods = made
    until_settled(history, pods())
    print("seconds from each SIGTERM to the next bind:", [round(one, 2) for one in took])
    assert codes == [0] * STOPS
    assert max(took) <= limit(AFTER_RELEASE_S)
    quiet_logs(*replicas)


def test_a_leader_that_is_stopped_in_the_middle_of_a_drain_loses_nothing(cluster: Cluster, history: History) -> None:
    cluster.hollow_nodes(NODES, cpu=tight(PODS))
    replicas = [cluster.situate(elected(STEADY)) for _ in range(2)]
    pods = crowd(cluster, "a", PODS)
    until_bound(history, PODS // 4)
    leader = leader_of(cluster, replicas)
    assert history.waiting(), "too late: all was done"
    next_bind_after(history, lambda: leader.signal(signal.SIGTERM))
    assert leader.wait() == 0
    until_settled(history, pods)
    quiet_logs(*replicas)


def test_a_deposed_leader_binds_nothing_when_it_wakes_up(cluster: Cluster, history: History) -> None:
    """A process that was stopped for longer than its lease lasts, in the middle of a drain."""
    cluster.hollow_nodes(NODES, cpu=tight(PODS))
    with FaultProxy(cluster, seed=5) as proxy:
        zombie = behind(cluster, proxy, elected(APART))
        wait_until(lambda: leads(cluster, zombie), "it to lead", WITHIN_S)
        heir = cluster.situate(elected({"clientConnection": {"qps": 20, "burst": 1}}))
        pods = crowd(cluster, "a", PODS)
        until_bound(history, 40)

        next_bind_after(history, lambda: stop_between_binds(zombie, proxy))
        sent = binds_sent(proxy)
        assert sent < PODS, "too late: all was done"
        waiting = len(history.waiting())
        zombie.signal(signal.SIGCONT)
        assert zombie.wait(limit(10)) == 1
        assert waiting > 0, "there was nothing left to bind for it"
        assert binds_sent(proxy) == sent, "it bound pods of which it was not the master"
    assert zombie.said().count('"Leaderelection lost"') == 1
    heir.stop()
    again_fast = cluster.situate(FAST)
    until_settled(history, pods)
    quiet_logs(zombie, heir, again_fast)


def stop_between_binds(scheduler: Scheduler, proxy: FaultProxy) -> None:
    """Right after a bind arrived, long before the next: one that is half out when it stops arrives when it goes on."""
    until = time.monotonic() + WITHIN_S
    while time.monotonic() < until:
        sent, before = binds_sent(proxy), time.monotonic()
        time.sleep(0.001)
        if binds_sent(proxy) > sent:
            scheduler.signal(signal.SIGSTOP)
            if time.monotonic() < before + BETWEEN_S:
                return
            scheduler.signal(signal.SIGCONT)
    raise TimeoutError("it could not be stopped between two binds")


def binds_sent(proxy: FaultProxy) -> int:
    return sum(number for (method, path), number in proxy.counts.requests.items() if BINDS.of(method, path))


# ── gangs ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def scheduled(cluster: Cluster, group: str) -> str:
    """The status of the condition that says so; empty while there is none."""
    path = f"/apis/{GROUPS_API}/namespaces/{cluster.namespace}/podgroups/{group}"
    conditions = cluster.api.get(path).get("status", {}).get("conditions", [])
    return next((one["status"] for one in conditions if one["type"] == GROUP_CONDITION), "")


def test_a_gang_is_whole_though_its_leader_was_killed_while_it_was_bound(cluster: Cluster, history: History) -> None:
    """Two gangs, and room for one: the other one must not take the room that the first one's rest needs."""
    size = 50
    cluster.hollow_nodes(10, cpu="6")
    slow = elected({"clientConnection": {"qps": 25, "burst": 1}})
    replicas = [cluster.situate(slow) for _ in range(2)]
    leader = leader_of(cluster, replicas)
    cluster.create(pod_group("first", size))
    first = crowd(cluster, "first", size, group="first")
    until_bound(history, 5)
    cluster.create(pod_group("second", size))
    second = crowd(cluster, "second", size, group="second")
    leader.kill()
    assert history.waiting() & first, "too late: all was done"

    wait_until(lambda: not history.waiting() & first, "the rest of the gang to be bound", WITHIN_S)
    wait_until(lambda: scheduled(cluster, "first") == "True", "the group to be told", WITHIN_S)
    wait_until(lambda: scheduled(cluster, "second") == "False", "the other to be told", WITHIN_S)
    assert history.waiting() == second
    assert history.problems() == []
    quiet_logs(*replicas)


def given_up(cluster: Cluster, history: History) -> None:
    """Half a gang, whose rest has no room any more when the next leader comes: it gives back what it has."""
    size = 30
    nodes = cluster.hollow_nodes(6, cpu="5")
    cluster.kwok()
    slow = elected({"clientConnection": {"qps": 4, "burst": 1}})
    replicas = [cluster.situate(slow) for _ in range(2)]
    leader = leader_of(cluster, replicas)
    cluster.create(pod_group("half", size))
    half = crowd(cluster, "half", size, group="half", terminationGracePeriodSeconds=1)
    until_bound(history, 5)
    leader.kill()
    taken = {one.node for one in history.binds()}
    away = next((name for name in nodes if name not in taken), nodes[-1])
    cluster.api.delete(f"/api/v1/nodes/{away}")
    wait_until(lambda: len(history.gone()) >= 5, "what was bound to be given up", GANG_LIMIT_S + WITHIN_S)
    assert history.gone() <= half
    assert not [one for one in history.pods().values() if one.node], "somebody still holds room"
    quiet_logs(*replicas)


if LONG:  # it takes as long as a gang may take to become whole

    def test_half_a_gang_that_cannot_become_whole_gives_back_its_room(cluster: Cluster, history: History) -> None:
        given_up(cluster, history)


def test_gangs_are_bound_whole_or_not_at_all_though_binds_fail(cluster: Cluster, history: History) -> None:
    cluster.hollow_nodes(10, cpu="6")
    with FaultProxy(cluster, seed=6) as proxy:
        scheduler = behind(cluster, proxy, FAST)
        proxy.set(Faults(answers=(Fault(BINDS, 0.1, 500), Fault(BINDS, 0.1, 500, forwarded=True))))
        gangs = {}
        for name in ("a", "b", "c"):
            cluster.create(pod_group(name, 25))
            gangs[name] = crowd(cluster, name, 25, group=name)
        wait_until(lambda: len(history.waiting()) == 25, "two gangs of three to be bound", WITHIN_S)
        wait_until(
            lambda: sorted(scheduled(cluster, name) for name in gangs) == ["False", "True", "True"],
            "the groups to be told",
            WITHIN_S,
        )
        assert history.waiting() in gangs.values()
        assert history.problems() == []
    quiet_logs(scheduler)
