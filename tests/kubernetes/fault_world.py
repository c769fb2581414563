"""What `make etcd-faults` breaks: members of etcd, servers of situate on them, and hollow nodes that reach either.

Members and servers keep their addresses when they are started again.
"""

import asyncio
import base64
import json
import signal
import sys
import threading
import time
import urllib.request
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import urlsplit

from kubernetes.api import Json
from kubernetes.own_cluster import OwnCluster
from kubernetes.parts import Part, free_ports, wait_until
from store.etcd_server import Etcd, healthy

NODES = 4
FLOODS = 1_500
FLOOD_BYTES = 20_000
CHUNK = 65_536
ETCD_FLAGS = ("--unsafe-no-fsync", "--log-level=error")
"""Elections at etcd's own pace. The disk is not what is tested."""


class Balancer:
    """Passes connections on to a server that is up, as a load balancer does. Servers that are down lose theirs."""

    def __init__(self) -> None:
        self.up: list[str] = []
        self._open: dict[str, set[asyncio.Task[None]]] = {}
        self._loop = asyncio.new_event_loop()
        self._turn = 0
        self._thread = threading.Thread(target=self._loop.run_forever, name="balancer", daemon=True)
        self._thread.start()
        starting = asyncio.start_server(self._met, "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(starting, self._loop).result()
        self.url = f"https://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def set_up(self, servers: list[str]) -> None:
        self._loop.call_soon_threadsafe(self._set_up, servers)

    def _set_up(self, servers: list[str]) -> None:
        self.up = servers
        for there, tasks in self._open.items():
            if there not in servers:
                for task in tasks:
                    task.cancel()

    async def _met(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if not self.up or task is None:
            writer.close()
            return
        self._turn += 1
        there = self.up[self._turn % len(self.up)]
        self._open.setdefault(there, set()).add(task)
        with suppress(OSError, asyncio.CancelledError):
            host, _, port = there.partition(":")
            there_reader, there_writer = await asyncio.open_connection(host, int(port))
            try:
                passing = [
                    asyncio.create_task(_pass_on(reader, there_writer)),
                    asyncio.create_task(_pass_on(there_reader, writer)),
                ]
                try:
                    await asyncio.wait(passing, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for each in passing:
                        each.cancel()
            finally:
                there_writer.close()
        self._open[there].discard(task)
        writer.close()

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()


class FaultWorld:
    """`with FaultWorld(folder, members=3, servers=2) as world: ...`"""

    def __init__(self, home: Path, members: int, servers: int) -> None:
        self._home = home
        self.etcd = Etcd(home / "etcd", members, ETCD_FLAGS, quick=False)
        self._ports = free_ports(servers)
        self.servers: list[OwnCluster] = []
        self.balancer = Balancer()
        self._stack = ExitStack()

    def __enter__(self) -> "FaultWorld":
        self._stack.enter_context(self.etcd)
        for number, port in enumerate(self._ports):
            # Each begins with another member, so that every member has a server that is connected to it.
            endpoints = self.etcd.endpoints[number:] + self.etcd.endpoints[:number]
            flags = ("--store", f"etcd://{','.join(endpoints)}/situate", "--port", str(port))
            trusts = self.servers[0] if self.servers else None
            home = self._home / f"server-{number}"
            server = ShiftableServer(home, *flags, "--with", "scheduler", "--with", "controllers", trusts=trusts)
            self.servers.append(server)
            self._stack.enter_context(server)
        self.all_up()
        first = self.servers[0]
        kubeconfig = first.kubeconfig_for(first.tokens["admin"], server=self.balancer.url, name="balanced")
        command = [sys.executable, "-m", "situate", "node", "--hollow", str(NODES), "--kubeconfig", str(kubeconfig)]
        self.nodes = Part("hollow nodes", command, self._home / "nodes.log")
        self.nodes.start()
        self._stack.callback(self.nodes.kill)
        first.wait_for_nodes(NODES)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        self.balancer.close()

    # -- servers -----------------------------------------------------------------------------------------------------

    def all_up(self, but: "OwnCluster | None" = None) -> None:
        self.balancer.set_up([urlsplit(one.url).netloc for one in self.servers if one is not but])

    def leads(self, server: OwnCluster, lease: str = "situate-controllers") -> bool:
        """Whether this server was the last to take a lease, by the logs of all."""
        taken: dict[str, OwnCluster] = {}
        for one in self.servers:
            for line in one.apiserver.said().splitlines():
                if "Successfully acquired lease" in line and lease in line:
                    taken[line.split()[1]] = one
        return bool(taken) and taken[max(taken)] is server

    def leading(self) -> OwnCluster:
        return next((one for one in self.servers if self.leads(one)), self.servers[0])

    def standing_by(self) -> OwnCluster:
        return next(one for one in self.servers if one is not self.leading())

    # -- etcd --------------------------------------------------------------------------------------------------------

    def call(self, endpoint: str, path: str, body: Json) -> Json:
        request = urllib.request.Request(f"http://{endpoint}/v3/{path}", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=30) as answer:
            found: Json = json.load(answer)
            return found

    def leader(self) -> int:
        """The number of the member that leads."""
        for number, endpoint in enumerate(self.etcd.endpoints):
            status = self.call(endpoint, "maintenance/status", {})
            if status["header"]["member_id"] == status["leader"]:
                return number
        raise LookupError("no member leads")

    def answers(self, number: int) -> None:
        """Wait until a member answers."""
        wait_until(lambda: healthy(f"http://{self.etcd.endpoints[number]}", None), "a member of etcd to answer")

    def compact(self) -> None:
        """Forget all history before now."""
        endpoint = self.etcd.endpoints[0]
        key = base64.b64encode(b"x").decode()
        revision = self.call(endpoint, "kv/range", {"key": key})["header"]["revision"]
        self.call(endpoint, "kv/compaction", {"revision": revision, "physical": True})

    def compact_behind(self) -> None:
        """Write more than the connection of a frozen server holds, of a kind that nobody knows, and forget it."""
        key = base64.b64encode(b"/situate//objects/example.test/floods/one").decode()
        value = base64.b64encode(bytes(FLOOD_BYTES)).decode()
        for _ in range(FLOODS):
            self.call(self.etcd.endpoints[0], "kv/put", {"key": key, "value": value})
        self.call(self.etcd.endpoints[0], "kv/deleterange", {"key": key})
        self.compact()

    def alarm(self, action: str) -> None:
        """ACTIVATE or DEACTIVATE the alarm that there is no space."""
        endpoint = self.etcd.endpoints[0]
        member = self.call(endpoint, "maintenance/status", {})["header"]["member_id"]
        self.call(endpoint, "maintenance/alarm", {"action": action, "memberID": member, "alarm": "NOSPACE"})

    def defragment(self) -> None:
        for endpoint in self.etcd.endpoints:
            self.call(endpoint, "maintenance/defragment", {})


class ShiftableServer(OwnCluster):
    """A server whose wall clock can be shifted."""

    def _command(self) -> list[str]:
        shifted = Path(__file__).with_name("shifted_server.py")
        return [sys.executable, str(shifted), str(self.home / "clock-shift")]

    def shift_clock(self, seconds: int) -> None:
        (self.home / "clock-shift").write_text(str(seconds))
        self.apiserver.signal(signal.SIGUSR2)


def frozen(part: Part, seconds: float) -> None:
    part.signal(signal.SIGSTOP)
    try:
        time.sleep(seconds)
    finally:
        part.signal(signal.SIGCONT)
