"""What users do with devices: pods that ask for some, claims that pods share, and claims deleted at odd moments."""

from __future__ import annotations

from random import Random
from typing import Final

from msgspec.structs import replace

from situate.core.model.devices import ResourceClaim
from situate.core.model.managed_devices import ManagedResourceClaimTemplate
from situate.core.model.meta import ObjectMeta, key_of
from situate.core.model.node import Node
from situate.core.model.pod import Pod, PodResourceClaim
from situate.sim.devices.claim_server import ClaimServer
from situate.sim.devices.controller import make_template
from situate.sim.devices.drawing import ACCELERATOR, draw_claim_spec
from situate.sim.faults import Faults
from situate.sim.kubelet import LIFECYCLE
from situate.sim.timeline import Timeline
from situate.sim.workload import NAMESPACE, TOLERATIONS

TEMPLATES: Final = 4
SHARED: Final = 3
ACT_MS: Final = (200, 2_500)
SHORT_LIVES: Final = ("job", "brief", "batch", "batch", "service")


class DeviceUsers:
    """Runs until `stopped`."""

    def __init__(self, timeline: Timeline, rng: Random, server: ClaimServer, faults: Faults) -> None:
        self.stopped = False
        self._timeline = timeline
        self._rng = rng
        self._server = server
        self._faults = faults
        self.templates: dict[str, ManagedResourceClaimTemplate] = {
            f"ct{at}": make_template(f"ct{at}", draw_claim_spec(rng)) for at in range(TEMPLATES)
        }
        self._asking = rng.uniform(0.5, 1.0)
        """The share of pod templates that ask for devices."""
        self._plugged = rng.choice((0.0, 0.0, 0.2))
        """The share of nodes where a device plugin serves the extended resource."""
        self._asks: dict[str, tuple[tuple[PodResourceClaim, ...], int]] = {}
        self._plain: dict[str, str] = {}
        """The life cycle of pods that ask for little but devices, by template; "": they are as others."""

    def begin(self) -> None:
        for at in range(SHARED):
            self._share(f"sc{at}")
        self._timeline.after(self._rng.randint(*ACT_MS), self._act)

    def equipped(self, node: Node) -> Node:
        if self._rng.random() >= self._plugged:
            return node
        room = {**node.status.allocatable, ACCELERATOR: str(self._rng.randint(1, 2))}
        return replace(node, status=replace(node.status, allocatable=room))

    def asking(self, template: str, pod: Pod) -> Pod:
        """The pod with the claims of its template; one whose template has none stays as it is."""
        if template not in self._asks:
            self._asks[template] = self._draw()
            self._plain[template] = self._rng.choice(SHORT_LIVES) if self._rng.random() < 0.75 else ""
        claims, accelerators = self._asks[template]
        if not claims and not accelerators:
            return pod
        spec = replace(pod.spec, resource_claims=claims)
        container = spec.containers[0]
        requests = dict(container.resources.requests)
        if self._plain[template]:
            requests = {"cpu": "50m"}
            spec = replace(
                spec, affinity=None, node_selector={}, topology_spread_constraints=(), tolerations=TOLERATIONS
            )
        if accelerators:
            requests[ACCELERATOR] = str(accelerators)
        asks = replace(container, resources=replace(container.resources, requests=requests))
        pod = replace(pod, spec=replace(spec, containers=(asks, *spec.containers[1:])))
        if life := self._plain[template]:
            notes = {**pod.metadata.annotations, LIFECYCLE: life}
            pod = replace(pod, metadata=replace(pod.metadata, annotations=notes))
        return pod

    def _draw(self) -> tuple[tuple[PodResourceClaim, ...], int]:
        rng = self._rng
        if rng.random() >= self._asking:
            return (), 0
        if rng.random() < 0.2:
            return (), rng.choice((1, 1, 2))
        claims: list[PodResourceClaim] = []
        for at in range(rng.choice((1, 1, 2))):
            shared = f"sc{rng.randrange(SHARED)}"
            if rng.random() < 0.3 and all(one.resource_claim_name != shared for one in claims):
                claims.append(PodResourceClaim(name=f"c{at}", resource_claim_name=shared))
            else:
                made = f"ct{rng.randrange(TEMPLATES)}"
                claims.append(PodResourceClaim(name=f"c{at}", resource_claim_template_name=made))
        # As in Kubernetes, a pod with both cannot be bound where a device plugin serves the resource.
        both = rng.random() < 0.1 and not self._plugged
        return tuple(claims), 1 if both else 0

    # -- claims --------------------------------------------------------------------------------------------------

    def _share(self, name: str) -> None:
        metadata = ObjectMeta(name=name, namespace=NAMESPACE)
        self._server.create(ResourceClaim(metadata=metadata, spec=draw_claim_spec(self._rng)))

    def _act(self) -> None:
        if self.stopped:
            return
        missing = [f"sc{at}" for at in range(SHARED) if self._server.get(f"{NAMESPACE}/sc{at}") is None]
        claims = self._server.all()
        if missing and self._rng.random() < 0.4:
            self._share(missing[0])
        elif claims and self._rng.random() < self._faults.claim_is_deleted:
            claim = self._rng.choice(claims)
            self._server.delete(key_of(claim.metadata), claim.metadata.uid)
        self._timeline.after(self._rng.randint(*ACT_MS), self._act)
