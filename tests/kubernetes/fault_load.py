"""The load of `make etcd-faults`, and what it notes: acknowledged writes, every event that watches were told, and how
many pods Deployments and Jobs had at each revision.
"""

import http.client
import itertools
import json
import math
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from kubernetes.api import Json
from kubernetes.own_cluster import OwnCluster
from situate.core.reconcile.root_certificates import ROOT_CERTIFICATES

CONFIGS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
SCALED, ROLLED = "scaled", "rolled"
SIZES = (8, 3, 6, 10, 4)
FIRST_SIZE = 4
COMPLETIONS = 5
SURGE = 0.25
WRITE_EVERY_S = 0.05
CHANGE_EVERY_S = 1.5
JOBS_AT_ONCE = 2
WATCHES = 2
"""Watches of the writers' objects on each server."""
PATIENCE_S = 5.0
IDLE_S = 10.0
DECIDED_S = 5.0
"""A controller may have decided to make a pod this long before it is seen, when more were asked for."""
MERGE = "application/merge-patch+json"
FAILURES = (OSError, http.client.HTTPException, ValueError)


class AnswerError(OSError):
    """The server answered, and the answer was no."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status} {text}")
        self.status = status


class Requests:
    """One thread's connection to one server."""

    def __init__(self, server: OwnCluster, timeout_s: float = PATIENCE_S) -> None:
        self._tls = ssl.create_default_context(cafile=str(server.certificate))
        self._where = urlsplit(server.url).netloc
        self._headers = {"Authorization": f"Bearer {server.tokens['admin']}"}
        self._timeout_s = timeout_s
        self._connection: http.client.HTTPSConnection | None = None

    def ask(self, method: str, path: str, body: Json | None = None, kind: str = "application/json") -> Json:
        """Raises one of FAILURES."""
        response = self.open(method, path, body, kind)
        answer: Json = json.loads(response.read())
        return answer

    def open(
        self, method: str, path: str, body: Json | None = None, kind: str = "application/json"
    ) -> http.client.HTTPResponse:
        if self._connection is None:
            self._connection = http.client.HTTPSConnection(self._where, timeout=self._timeout_s, context=self._tls)
        try:
            data = None if body is None else json.dumps(body)
            self._connection.request(method, path, data, {**self._headers, "Content-Type": kind})
            response = self._connection.getresponse()
            if response.status >= http.client.BAD_REQUEST:
                raise AnswerError(response.status, response.read().decode("utf-8", "replace")[:200])
        except FAILURES:
            self.close()
            raise
        return response

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class Worker(threading.Thread):
    """`turn` is called again and again, until `end`."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.ending = threading.Event()

    def run(self) -> None:
        while not self.ending.is_set():
            self.turn()
        self.close()

    def turn(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Close connections."""


class Acknowledged(NamedTuple):
    revision: int
    name: str
    value: str
    at: float


class Writer(Worker):
    """Counts in an object of its own, and notes what is acknowledged."""

    def __init__(self, server: OwnCluster, name: str) -> None:
        super().__init__(f"writer {name}")
        self.object = name
        self.acknowledged: list[Acknowledged] = []
        self._requests = Requests(server)
        self._numbers = itertools.count(1)
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": "0"}}
        self._requests.ask("POST", CONFIGS, config)

    def turn(self) -> None:
        value = str(next(self._numbers))
        try:
            written = self._requests.ask("PATCH", f"{CONFIGS}/{self.object}", {"data": {"value": value}}, MERGE)
        except FAILURES:
            time.sleep(0.1)
            return
        version = int(written["metadata"]["resourceVersion"])
        self.acknowledged.append(Acknowledged(version, self.object, value, time.monotonic()))
        time.sleep(WRITE_EVERY_S)

    def close(self) -> None:
        self._requests.close()


class Event(NamedTuple):
    revision: int
    type: str
    object: Json
    at: float

    @property
    def name(self) -> str:
        name: str = self.object["metadata"]["name"]
        return name


class Watcher(Worker):
    """Follows a kind on one server, from where it was, however often the connection breaks.

    `gaps` has the revisions after which it had to list again: it may have missed what came in between.
    """

    def __init__(self, server: OwnCluster, path: str) -> None:
        super().__init__(f"watch of {path}")
        self.path = path
        self.events: list[Event] = []
        self.version = 0
        self.since = 0
        self.gaps: list[tuple[int, int]] = []
        self._known: dict[str, Json] = {}
        self._requests = Requests(server, IDLE_S)
        self._listed = False

    def turn(self) -> None:
        try:
            if not self._listed:
                self._list()
            self._follow()
        except AnswerError as error:
            if error.status == http.client.GONE:
                self._listed = False
            time.sleep(0.2)
        except FAILURES:
            time.sleep(0.2)
        finally:
            self._requests.close()

    def _list(self) -> None:
        found = self._requests.ask("GET", self.path)
        version = int(found["metadata"]["resourceVersion"])
        listed = {item["metadata"]["name"]: item for item in found["items"]}
        if self.version:
            self.gaps.append((self.version, version))
        else:
            self.since = version
        for name, item in listed.items():
            if self._known.get(name, {}).get("metadata") != item["metadata"]:
                self._note("MODIFIED" if name in self._known else "ADDED", item)
        for name in [name for name in self._known if name not in listed]:
            self._note("DELETED", self._known[name])
        self.version, self._listed = version, True

    def _follow(self) -> None:
        where = f"{self.path}?watch=true&allowWatchBookmarks=true&resourceVersion={self.version}"
        response = self._requests.open("GET", where)
        while not self.ending.is_set():
            line = response.readline()
            if not line.endswith(b"\n"):
                return
            event = json.loads(line)
            if event["type"] == "ERROR":
                raise AnswerError(event["object"].get("code", 0), str(event["object"].get("message")))
            if event["type"] != "BOOKMARK":
                self._note(event["type"], event["object"])
            self.version = max(self.version, int(event["object"]["metadata"]["resourceVersion"]))

    def _note(self, kind: str, item: Json) -> None:
        name = item["metadata"]["name"]
        self._known[name] = item
        if kind == "DELETED":
            del self._known[name]
        self.events.append(Event(int(item["metadata"]["resourceVersion"]), kind, item, time.monotonic()))

    def told(self) -> "Told":
        """The events received so far, while it goes on."""
        version = self.version  # before the events, as it grows after them
        return Told(self.since, version, list(self.gaps), list(self.events))


class Told(NamedTuple):
    """The events that one watch received up to a revision."""

    since: int
    version: int
    gaps: list[tuple[int, int]]
    events: list[Event]

    def covers(self, revision: int) -> bool:
        """Whether it must have received a change at this revision."""
        return self.since < revision <= self.version and not any(a < revision <= b for a, b in self.gaps)

    def repeated(self) -> int:
        """How many events came twice. Lists after gaps do not count."""
        keys = [(event.revision, event.name) for event in self.events if self.covers(event.revision)]
        return len(keys) - len(set(keys))


class Workloads(Worker):
    """Scales one Deployment, rolls another out, and has Jobs run, by way of each server in turn."""

    def __init__(self, servers: Sequence[OwnCluster]) -> None:
        super().__init__("workloads")
        self.resting = threading.Event()
        self.jobs: list[str] = []
        self._clients = [Requests(server) for server in servers]
        self._requests = itertools.cycle(self._clients)
        self._numbers = itertools.count(1)
        first = next(self._requests)
        for name in (SCALED, ROLLED):
            first.ask("POST", DEPLOYMENTS, deployment(name, FIRST_SIZE, "v0"))

    def turn(self) -> None:
        if self.resting.is_set():
            time.sleep(0.1)
            return
        number, requests = next(self._numbers), next(self._requests)
        try:
            size = SIZES[number % len(SIZES)]
            requests.ask("PATCH", f"{DEPLOYMENTS}/{SCALED}", {"spec": {"replicas": size}}, MERGE)
            if number % 4 == 0:
                container = {"name": "main", "image": f"registry.test/app:v{number}"}
                template = {"spec": {"containers": [container]}}
                requests.ask("PATCH", f"{DEPLOYMENTS}/{ROLLED}", {"spec": {"template": template}}, MERGE)
            if number % 2 == 0 and sum(not finished(job) for job in requests.ask("GET", JOBS)["items"]) < JOBS_AT_ONCE:
                requests.ask("POST", JOBS, job(f"job-{number}"))
                self.jobs.append(f"job-{number}")
        except FAILURES:
            requests.close()
        time.sleep(CHANGE_EVERY_S)

    def close(self) -> None:
        for requests in self._clients:
            requests.close()


def deployment(name: str, replicas: int, version: str) -> Json:
    container = {"name": "main", "image": f"registry.test/app:{version}", "resources": {"requests": {"cpu": "10m"}}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def job(name: str) -> Json:
    template = {
        "metadata": {"annotations": {"hollow.situate.dev/run-for": "300ms"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "registry.test/job"}]},
    }
    spec = {"completions": COMPLETIONS, "parallelism": 2, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def finished(one: Json) -> bool:
    conditions = one.get("status", {}).get("conditions", ())
    return any(each["type"] in ("Complete", "Failed") and each["status"] == "True" for each in conditions)


class PodCounts:
    """Judges every pod that is made, in the order of revisions: did its owner ask for one more?"""

    def __init__(self, pods: Watcher, deployments: Watcher) -> None:
        self._watchers = pods, deployments
        self._judged = [0, 0]
        self._active: dict[str, set[str]] = {SCALED: set(), ROLLED: set()}
        self._asked: dict[str, list[tuple[float, int]]] = {SCALED: [(0.0, FIRST_SIZE)], ROLLED: [(0.0, FIRST_SIZE)]}
        self.of_job: dict[str, set[str]] = {}

    def excess(self) -> list[str]:
        """What was made in excess since the last call, one line each."""
        return [line for event in self._news() if (line := self._judge(event))]

    def _news(self) -> Iterator[Event]:
        new: list[Event] = []
        for number, watcher in enumerate(self._watchers):
            events = watcher.events[self._judged[number] :]
            self._judged[number] += len(events)
            new += events
        return iter(sorted(new, key=lambda event: event.revision))

    def _judge(self, event: Event) -> str:
        if "template" in event.object["spec"]:  # a Deployment
            self._asked[event.name].append((event.at, event.object["spec"].get("replicas", 1)))
            return ""
        labels = event.object["metadata"].get("labels", {})
        if (owner := labels.get("job-name")) and event.type == "ADDED":
            made = self.of_job.setdefault(owner, set())
            made.add(event.object["metadata"]["uid"])
            return f"{owner} has pod {len(made)} of {COMPLETIONS}" if len(made) > COMPLETIONS else ""
        app = labels.get("app", "")
        if app not in self._active:
            return ""
        ends = event.type == "DELETED" or "deletionTimestamp" in event.object["metadata"]
        if ends or event.object.get("status", {}).get("phase") in ("Succeeded", "Failed"):
            self._active[app].discard(event.name)
            return ""
        if event.name in self._active[app]:
            return ""
        self._active[app].add(event.name)
        most = self._most(app, event.at)
        count = len(self._active[app])
        return f"{app} has {count} pods of at most {most} at revision {event.revision}" if count > most else ""

    def _most(self, app: str, now: float) -> int:
        """The most that a controller may have been asked for when it decided to make a pod that is seen now."""
        asked = self._asked[app]
        recent = [size for at, size in asked if at >= now - DECIDED_S]
        before = [size for at, size in asked if at < now - DECIDED_S][-1:]
        size = max([*recent, *before], default=0)
        return size + (math.ceil(SURGE * size) if app == ROLLED else 0)


class Load:
    """All of it. `begin`, and `end` at last."""

    def __init__(self, servers: Sequence[OwnCluster]) -> None:
        self.writers = [Writer(server, f"counter-{number}") for number, server in enumerate(servers)]
        self.watchers = [Watcher(server, CONFIGS) for server in servers for _ in range(WATCHES)]
        self.nodes = Watcher(servers[-1], NODES)
        pods, deployments = Watcher(servers[-1], PODS), Watcher(servers[-1], DEPLOYMENTS)
        self.counts = PodCounts(pods, deployments)
        self.workloads = Workloads(servers)
        self.workers: list[Worker] = [
            *self.watchers,
            self.nodes,
            pods,
            deployments,
            *self.writers,
            self.workloads,
        ]
        self._judged = 0
        self._judged_nodes = 0

    def begin(self) -> None:
        for worker in self.workers:
            worker.start()

    def end(self) -> None:
        """Returns when all have ended."""
        for worker in self.workers:
            worker.ending.set()
        for worker in self.workers:
            worker.join()

    def longest_pause(self, since: float, until: float) -> float:
        """The longest time in which one of the writers got no answer."""
        longest = 0.0
        for writer in self.writers:
            times = [since, *(one.at for one in list(writer.acknowledged) if since <= one.at <= until), until]
            longest = max(longest, *(b - a for a, b in itertools.pairwise(times)))
        return longest

    def given_up(self) -> list[str]:
        """Nodes that the controllers gave up since the last call."""
        new = self.nodes.events[self._judged_nodes :]
        self._judged_nodes += len(new)
        found: dict[str, None] = {}
        for event in new:
            conditions = {one["type"]: one["status"] for one in event.object.get("status", {}).get("conditions", ())}
            taints = [taint["effect"] for taint in event.object["spec"].get("taints", ())]
            if conditions.get("Ready", "True") != "True" or "NoExecute" in taints:
                found[event.name] = None
        return list(found)

    def caught_up(self) -> bool:
        """Whether every watch has what was acknowledged last."""
        newest = [writer.acknowledged[-1].revision for writer in self.writers if writer.acknowledged]
        return all(watcher.version >= max(newest, default=0) for watcher in self.watchers)

    def histories(self) -> tuple[int, int, int]:
        """Lost acknowledged writes, events that a watch missed, and events that a watch received twice."""
        acknowledged = [one for writer in self.writers for one in list(writer.acknowledged)]
        told = [watcher.told() for watcher in self.watchers]
        values = [
            {
                (event.revision, event.name): event.object["data"]["value"]
                for event in one.events
                if event.name != ROOT_CERTIFICATES  # not of this load
            }
            for one in told
        ]
        everything: dict[tuple[int, str], str] = {}
        for seen in values:
            everything.update(seen)
        lost = sum(
            everything.get((one.revision, one.name)) != one.value
            for one in acknowledged
            if any(each.covers(one.revision) for each in told)
        )
        everything.update({(one.revision, one.name): one.value for one in acknowledged})
        missed = sum(
            key not in seen for one, seen in zip(told, values, strict=True) for key in everything if one.covers(key[0])
        )
        return lost, missed, sum(one.repeated() for one in told)
