"""The directories of volumes that were provisioned on this node: created for the first pod that mounts one, kept while
the volume exists, and removed when it is deleted.

    <root>/<volume>/claim    the namespace and the name of its claim
                   /data     what the containers see

Before a pod starts, the agent adds a finalizer to the volume: a volume that is deleted stays until the agent has
removed its directory. It does so when its finalizer is the last one: a volume that is deleted while it is bound keeps
its files until its claim is gone. With the reclaim policy Retain the directory stays when the volume goes. A directory
whose volume is unknown to the server is left alone, unless nothing is in it.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

from situate.agent.clock import Clock
from situate.agent.control_plane import ControlPlane, ControlPlaneError
from situate.agent.environment import ContainerConfigError
from situate.agent.volumes import FAILED_MOUNT
from situate.core.reconcile.volumes.provisioner import DIRECTORY, PROVISIONER
from situate.loop.logs import Log

CLAIM: Final = "claim"
DATA: Final = "data"
SWEEP_S: Final = 5.0
"""How often the agent looks for volumes that were deleted."""
NO_CLAIM: Final = 'persistentvolumeclaim "{}" not found'
UNBOUND: Final = 'persistentvolumeclaim "{}" is not bound'
NOT_ITS_OWN: Final = 'persistentvolumeclaim "{}" was not created for the pod'
NO_VOLUME: Final = 'persistentvolume "{}" not found'
MISBOUND: Final = 'persistentvolume "{}" is bound to another claim'
UNSUPPORTED: Final = 'persistentvolume "{}" is of a type that the process runtime cannot mount'
BLOCK: Final = 'persistentvolume "{}" is a block device, which the process runtime cannot provide'

_log = Log(__name__)


def claims_of(pod: Mapping[str, Any]) -> dict[str, str]:
    """The claim of each volume that has one."""
    found = {}
    for volume in pod["spec"].get("volumes", ()):
        if "persistentVolumeClaim" in volume:
            found[volume["name"]] = volume["persistentVolumeClaim"].get("claimName", "")
        elif "ephemeral" in volume:
            found[volume["name"]] = f"{pod['metadata']['name']}-{volume['name']}"
    return found


class ClaimVolumes:
    def __init__(
        self, control_plane: ControlPlane, root: Path, clock: Clock, pods: Callable[[], Iterable[Mapping[str, Any]]]
    ) -> None:
        """`pods`: those that may have containers here."""
        self._control_plane = control_plane
        self._root = root
        self._clock = clock
        self._pods = pods
        self._changing = asyncio.Lock()
        """Held while a directory is reserved or removed."""

    # -- mounting ----------------------------------------------------------------------------------------------------

    async def paths(self, pod: Mapping[str, Any]) -> dict[str, Path]:
        """Where each volume with a claim is. Raises ContainerConfigError, ControlPlaneError."""
        return {name: await self._path(pod, name, claim) for name, claim in claims_of(pod).items()}

    async def _path(self, pod: Mapping[str, Any], name: str, claim_name: str) -> Path:
        meta = pod["metadata"]
        claim = await self._control_plane.get("PersistentVolumeClaim", meta["namespace"], claim_name)
        if claim is None:
            _fail(name, NO_CLAIM.format(claim_name))
        ephemeral = any(one["name"] == name and "ephemeral" in one for one in pod["spec"]["volumes"])
        owners = claim["metadata"].get("ownerReferences", ())
        if ephemeral and not any(one.get("controller") and one.get("uid") == meta["uid"] for one in owners):
            _fail(name, NOT_ITS_OWN.format(claim_name))
        bound = claim["spec"].get("volumeName", "")
        if not bound or (claim.get("status") or {}).get("phase") != "Bound":
            _fail(name, UNBOUND.format(claim_name))
        async with self._changing:
            volume = await self._control_plane.get("PersistentVolume", "", bound)
            if volume is None:
                _fail(name, NO_VOLUME.format(bound))
            if (volume["spec"].get("claimRef") or {}).get("uid") != claim["metadata"]["uid"]:
                _fail(name, MISBOUND.format(bound))
            return await self._reserve(volume, name)

    async def _reserve(self, volume: dict[str, Any], name: str) -> Path:
        spec: dict[str, Any] = volume["spec"]
        bound: str = volume["metadata"]["name"]
        if spec.get("volumeMode") == "Block":
            _fail(name, BLOCK.format(bound))
        for kind in ("local", "hostPath"):
            if kind in spec:
                return _existing(spec[kind], name)
        if (spec.get("csi") or {}).get("driver") != PROVISIONER:
            _fail(name, UNSUPPORTED.format(bound))
        directory = self._root / bound
        if not (directory / CLAIM).exists():
            for made in (self._root, directory):
                made.mkdir(parents=True, exist_ok=True)
                made.chmod(0o711)  # whatever the umask
            ref = spec["claimRef"]
            (directory / CLAIM).write_text(f"{ref['namespace']}/{ref['name']}", encoding="utf-8")
        finalizers = volume["metadata"].get("finalizers", [])
        if DIRECTORY not in finalizers:
            await self._control_plane.set_finalizers(volume, [*finalizers, DIRECTORY])
        return directory / DATA

    # -- removing ----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._clock.sleep(SWEEP_S)
            try:
                await self.sweep()
            except OSError as error:
                _log.v(2).info("Cannot look for deleted volumes; trying again", err=str(error))

    async def sweep(self) -> None:
        """Remove the directories of volumes that are being deleted. One that cannot be removed keeps no other. Raises
        OSError."""
        if not self._root.is_dir():
            return
        for directory in sorted(self._root.iterdir()):
            async with self._changing:
                try:
                    if not self._is_used(directory):
                        await self._remove_if_deleted(directory)
                except (ControlPlaneError, OSError) as error:
                    _log.v(2).info(
                        "Cannot remove the directory of a volume; trying again", volume=directory.name, err=str(error)
                    )

    def _is_used(self, directory: Path) -> bool:
        try:
            namespace, _, claim = (directory / CLAIM).read_text(encoding="utf-8").partition("/")
        except FileNotFoundError:
            return False
        return any(
            pod["metadata"]["namespace"] == namespace and claim in claims_of(pod).values() for pod in self._pods()
        )

    async def _remove_if_deleted(self, directory: Path) -> None:
        volume = await self._control_plane.get("PersistentVolume", "", directory.name)
        if volume is None:
            (directory / CLAIM).unlink(missing_ok=True)
            for empty in (directory / DATA, directory):
                with contextlib.suppress(OSError):  # there is something in it
                    empty.rmdir()
            return
        meta = volume["metadata"]
        finalizers = meta.get("finalizers", [])
        if "deletionTimestamp" in meta and finalizers == [DIRECTORY]:  # a bound volume has others, and is still in use
            kept = volume["spec"].get("persistentVolumeReclaimPolicy") == "Retain"
            if not kept:
                await asyncio.to_thread(shutil.rmtree, directory)
            await self._control_plane.set_finalizers(volume, [])
            if kept:
                _log.info("Kept the directory of a deleted volume, as its reclaim policy asks", volume=directory.name)
            else:
                _log.info("Removed the directory of a deleted volume", volume=directory.name)


def _existing(source: Mapping[str, Any], name: str) -> Path:
    path = Path(source["path"])
    try:
        if source.get("type") == "DirectoryOrCreate":
            path.mkdir(mode=0o755, parents=True, exist_ok=True)
        found = path.exists()
    except (OSError, ValueError) as error:  # one that is too long, or contains a NUL character
        _fail(name, f"{source['path']!r}: {error}")
    if not found:
        _fail(name, f"{source['path']!r} does not exist")
    return path


def _fail(volume: str, why: str) -> NoReturn:
    raise ContainerConfigError(f"volume {volume}: {why}", FAILED_MOUNT)
