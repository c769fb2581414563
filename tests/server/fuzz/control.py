"""The control: a Deployment that nobody harms. It is scaled all the time, and has to follow within two seconds."""

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any

from server.fuzz.acts import MERGE
from server.fuzz.bases import CONTAINER
from server.fuzz.client import Client, Request
from server.fuzz.objects import encode

WITHIN_S = 2.0
GIVE_UP_S = 20.0
LOOK_S = 0.03
PAUSE_S = 0.25
NAMESPACE = "control"
NODE = "node-01"
"""The node of the control, which tolerates its taint. It has room, whatever fills the other nodes."""
LABELS = {"app": "control"}
SIZES = (1, 4, 2, 6, 3, 5, 0)
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
PRIORITY = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "control"},
    "value": 1_000_000_000,
}
TAINT = {"key": "control.test/only", "effect": "NoSchedule"}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "control"},
    "spec": {
        "replicas": 0,
        "selector": {"matchLabels": LABELS},
        "template": {
            "metadata": {"labels": LABELS},
            "spec": {
                "containers": [CONTAINER],
                "nodeSelector": {"kubernetes.io/hostname": NODE},
                "tolerations": [{"operator": "Exists", **{key: TAINT[key] for key in ("key", "effect")}}],
                "priorityClassName": "control",
                "terminationGracePeriodSeconds": 0,
            },
        },
    },
}


@dataclass(slots=True)
class Control:
    client: Client
    times: list[float] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    """What took longer than WITHIN_S."""
    stopping: bool = False

    async def ask(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> tuple[int, Any]:
        return await self.client.ask(Request(method, path, None if body is None else encode(body), kind))

    async def prepare(self) -> None:
        await self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        await self.ask("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", PRIORITY)
        for _ in range(200):
            code, _said = await self.ask("PATCH", f"/api/v1/nodes/{NODE}", {"spec": {"taints": [TAINT]}}, MERGE)
            if code == 200:
                break
            await asyncio.sleep(LOOK_S)
        else:
            raise RuntimeError(f"there is no node {NODE}")
        code, said = await self.ask("POST", DEPLOYMENTS, DEPLOYMENT)
        if code not in (201, 409):
            raise RuntimeError(f"the control was not accepted: {said}")

    async def run(self) -> None:
        turn = 0
        while not self.stopping:
            await self.client.up.wait()
            await self._once(SIZES[turn % len(SIZES)])
            turn += 1
            await asyncio.sleep(PAUSE_S)

    async def _once(self, size: int) -> None:
        starts = self.client.starts
        began = time.monotonic()
        code, said = await self.ask("PATCH", f"{DEPLOYMENTS}/control/scale", {"spec": {"replicas": size}}, MERGE)
        if code != 200:
            if self.client.up.is_set() and starts == self.client.starts:
                self.late.append(f"to {size} was answered {code}: {str(said)[:300]}")
            return
        state: Any = {}
        seen = ""
        while (took := time.monotonic() - began) < GIVE_UP_S:
            _, found = await self.ask("GET", f"{DEPLOYMENTS}/control")
            if self.client.starts != starts or not self.client.up.is_set():
                return  # the server was started anew in between
            if isinstance(found, dict) and "status" in found:
                state = found["status"]
                if self._has(found, size):
                    break
            if took > WITHIN_S and not seen:
                seen = await self._seen()
            await asyncio.sleep(LOOK_S)
        self.times.append(took)
        if took > WITHIN_S:
            counts = {key: value for key, value in state.items() if isinstance(value, int)}
            self.late.append(
                f"{time.strftime('%X')}: to {size} took {took:.1f} s: {counts}; after {WITHIN_S:.0f} s: {seen}"
            )

    async def _seen(self) -> str:
        """What keeps it: which of its pods exist, are bound, run; and how many pods there are in all."""
        began = time.monotonic()
        _, found = await self.ask("GET", f"/api/v1/namespaces/{NAMESPACE}/pods")
        asked_s = time.monotonic() - began
        items = found.get("items", []) if isinstance(found, dict) else []
        pods = [(one["spec"].get("nodeName", "unbound"), one.get("status", {}).get("phase")) for one in items]
        _, found = await self.ask("GET", "/api/v1/pods?limit=1")
        more = found.get("metadata", {}).get("remainingItemCount", 0) if isinstance(found, dict) else 0
        return f"{pods}, {more} other pods, list in {asked_s:.2f} s"

    @staticmethod
    def _has(found: Any, size: int) -> bool:
        status = found["status"]
        counts = [status.get(key, 0) for key in ("replicas", "readyReplicas", "updatedReplicas")]
        return counts == [size] * 3 and status.get("observedGeneration") == found["metadata"]["generation"]
