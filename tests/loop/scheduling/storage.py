"""A pod with claims, before any port: what tests of volumes begin with."""

from __future__ import annotations

from loop.scheduling.worlds import PortWorld
from situate.core.changes import VolumesFailed
from situate.core.effects import BindVolumes
from situate.loop.scheduling.volumes import RUNNING_PREBIND
from situate.server.requests import Object

SELECTED = "volume.kubernetes.io/selected-node"
COMPLETED = "pv.kubernetes.io/bind-completed"


class Storage:
    """A pod with a claim each to be bound and to be provisioned, where a case wants them."""

    def __init__(self, world: PortWorld, effect: BindVolumes) -> None:
        self.world = world
        self.effect = effect

    @staticmethod
    async def of(world: PortWorld, *, static: bool = True, provision: bool = False) -> Storage:
        if static:
            await world.add_claim("data")
            await world.add_volume("pv-1")
        if provision:
            await world.add_claim("fresh")
        ref = await world.add_pod()
        pairs = (("data", "pv-1"),) if static else ()
        return Storage(world, BindVolumes(ref, "n1", 1, pairs, ("fresh",) if provision else ()))

    async def begin(self) -> None:
        self.world.performer.perform([self.effect])
        await self.world.quiet()
        self.world.show()

    async def bind_claim(self, name: str, volume: str) -> None:
        """What a volume controller or a provisioner does in the end."""

        def change(claim: Object) -> None:
            claim["spec"]["volumeName"] = volume
            claim["metadata"].setdefault("annotations", {})[COMPLETED] = "yes"

        await self.world.change("PersistentVolumeClaim", name, change)
        self.world.show()

    async def annotate(self, name: str, **annotations: str) -> None:
        await self.world.change(
            "PersistentVolumeClaim", name, lambda claim: claim["metadata"].update(annotations=annotations)
        )
        self.world.show()

    async def reset(self) -> None:
        """Somebody takes the claim off the volume."""
        await self.world.change("PersistentVolume", "pv-1", lambda volume: volume["spec"].pop("claimRef"))

    async def failure(self) -> str:
        [answer] = await self.world.answers()
        assert isinstance(answer, VolumesFailed)
        assert (answer.pod, answer.attempt) == (self.effect.pod, 1)
        assert answer.problem.startswith(RUNNING_PREBIND)
        assert self.world.counted.failures == ["volumes"]
        return answer.problem.removeprefix(RUNNING_PREBIND)
