"""Volumes that were provisioned on a node: mounted, kept, and removed when they are deleted."""

import asyncio
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agent.world import FakePlane
from situate.agent.claim_volumes import ClaimVolumes
from situate.agent.clock import REAL
from situate.agent.environment import ContainerConfigError, EnvironmentSources
from situate.agent.volumes import prepare_volumes
from situate.core.reconcile.volumes.provisioner import DIRECTORY, PROVISIONER

PVC = ("PersistentVolumeClaim", "data")
PV = ("PersistentVolume", "pv")


def pod(**source: Any) -> dict[str, Any]:
    source = source or {"persistentVolumeClaim": {"claimName": "data"}}
    meta = {"name": "p", "namespace": "default", "uid": "u-1"}
    return {"metadata": meta, "spec": {"containers": [{"name": "c"}], "volumes": [{"name": "v", **source}]}}


def plane_with(volume: dict[str, Any] | None = None, **claim: Any) -> FakePlane:
    plane = FakePlane()
    held = {"metadata": {"name": "data", "uid": "c-1"}, "spec": {"volumeName": "pv"}, "status": {"phase": "Bound"}}
    plane.objects[PVC] = {**held, **claim}
    made = {"csi": {"driver": PROVISIONER, "volumeHandle": "pv"}}
    spec = {"claimRef": {"namespace": "default", "name": "data", "uid": "c-1"}, **(made if volume is None else volume)}
    plane.objects[PV] = {"metadata": {"name": "pv", "finalizers": ["kubernetes.io/pv-protection"]}, "spec": spec}
    return plane


def volumes(plane: FakePlane, root: Path, *pods: Mapping[str, Any]) -> ClaimVolumes:
    return ClaimVolumes(plane, root / "volumes", REAL, lambda: pods)


def mount(plane: FakePlane, root: Path, one: dict[str, Any]) -> Path:
    """What happens before a container of the pod starts."""
    claims = asyncio.run(volumes(plane, root).paths(one))
    prepare_volumes(one, root / "pod", EnvironmentSources("", {}, {}, {}, claims=claims))
    return claims["v"]


def finalizers(plane: FakePlane) -> list[str]:
    return list(plane.objects[PV]["metadata"]["finalizers"])


def test_what_a_pod_writes_is_there_for_the_next_one(tmp_path: Path) -> None:
    plane = plane_with()
    data = mount(plane, tmp_path, pod())
    (data / "file").write_text("kept")
    assert (mount(plane, tmp_path, pod()) / "file").read_text() == "kept"
    assert finalizers(plane) == ["kubernetes.io/pv-protection", DIRECTORY]


def test_a_deleted_volume_takes_its_directory_along(tmp_path: Path) -> None:
    plane = plane_with()
    data = mount(plane, tmp_path, pod())
    (data / "file").write_text("gone soon")
    asyncio.run(volumes(plane, tmp_path).sweep())
    assert data.exists()
    plane.objects[PV]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    asyncio.run(volumes(plane, tmp_path, pod()).sweep())
    assert data.exists(), "a pod still uses it"
    asyncio.run(volumes(plane, tmp_path).sweep())
    assert data.exists(), "it is still bound, and the next pod wants its files"
    plane.objects[PV]["metadata"]["finalizers"] = [DIRECTORY]
    asyncio.run(volumes(plane, tmp_path, pod()).sweep())
    assert data.exists(), "a pod still uses it"
    asyncio.run(volumes(plane, tmp_path).sweep())
    assert list((tmp_path / "volumes").iterdir()) == []
    assert finalizers(plane) == []


def test_a_deleted_volume_that_is_to_be_retained_leaves_its_files(tmp_path: Path) -> None:
    plane = plane_with()
    data = mount(plane, tmp_path, pod())
    (data / "file").write_text("still wanted")
    plane.objects[PV]["spec"]["persistentVolumeReclaimPolicy"] = "Retain"
    plane.objects[PV]["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [DIRECTORY]}
    asyncio.run(volumes(plane, tmp_path).sweep())
    assert (finalizers(plane), (data / "file").read_text()) == ([], "still wanted")
    del plane.objects[PV]
    asyncio.run(volumes(plane, tmp_path).sweep())
    assert (data / "file").read_text() == "still wanted"


def test_a_directory_that_cannot_be_removed_keeps_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plane = plane_with()
    mount(plane, tmp_path, pod())
    plane.objects[PV]["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [DIRECTORY]}
    plane.objects["PersistentVolume", "a"] = {
        **plane.objects[PV],
        "metadata": {**plane.objects[PV]["metadata"], "name": "a"},
    }
    stuck = tmp_path / "volumes" / "a"
    stuck.mkdir()
    (stuck / "claim").write_text("default/other")
    removed = shutil.rmtree

    def rmtree(path: Path) -> None:
        if path == stuck:
            raise PermissionError(13, "Permission denied")
        removed(path)

    monkeypatch.setattr(shutil, "rmtree", rmtree)
    asyncio.run(volumes(plane, tmp_path).sweep())
    assert list((tmp_path / "volumes").iterdir()) == [stuck]


def test_a_directory_with_files_of_an_unknown_volume_stays(tmp_path: Path) -> None:
    plane = plane_with()
    data = mount(plane, tmp_path, pod())
    (data / "file").write_text("precious")
    del plane.objects[PV]
    asyncio.run(volumes(plane, tmp_path).sweep())
    assert (data / "file").read_text() == "precious"
    (data / "file").unlink()
    asyncio.run(volumes(plane, tmp_path).sweep())
    assert list((tmp_path / "volumes").iterdir()) == []


def test_a_local_volume_is_its_path(tmp_path: Path) -> None:
    plane = plane_with({"local": {"path": str(tmp_path)}})
    assert mount(plane, tmp_path, pod()) == tmp_path


def test_an_ephemeral_volume_has_a_claim_of_the_pod(tmp_path: Path) -> None:
    plane = plane_with()
    plane.objects["PersistentVolumeClaim", "p-v"] = claim = plane.objects[PVC]
    with pytest.raises(ContainerConfigError, match="was not created for the pod"):
        mount(plane, tmp_path, pod(ephemeral={}))
    claim["metadata"]["ownerReferences"] = [{"uid": "u-1", "controller": True}]
    assert mount(plane, tmp_path, pod(ephemeral={})).is_dir()


@pytest.mark.parametrize(
    "plane, text",
    [
        pytest.param(FakePlane(), 'persistentvolumeclaim "data" not found', id="no claim"),
        pytest.param(plane_with(status={"phase": "Pending"}), "is not bound", id="an unbound claim"),
        pytest.param(plane_with(spec={"volumeName": "gone"}), 'persistentvolume "gone" not found', id="no volume"),
        pytest.param(plane_with({"claimRef": {"uid": "other"}}), "bound to another claim", id="another's volume"),
        pytest.param(plane_with({"nfs": {"server": "s"}}), "cannot mount", id="a volume of another type"),
        pytest.param(plane_with({"volumeMode": "Block"}), "block device", id="a block device"),
        pytest.param(
            plane_with({"local": {"path": "/nowhere/at/all"}}), "does not exist", id="a path that is not there"
        ),
        pytest.param(
            plane_with({"hostPath": {"path": "/dev/null/no", "type": "DirectoryOrCreate"}}),
            "Not a directory",
            id="a path that cannot be made",
        ),
        pytest.param(
            plane_with({"hostPath": {"path": "/\0", "type": "DirectoryOrCreate"}}),
            "null",
            id="a path with a NUL character",
        ),
    ],
)
def test_a_pod_does_not_start_with(plane: FakePlane, text: str, tmp_path: Path) -> None:
    with pytest.raises(ContainerConfigError, match=text) as raised:
        mount(plane, tmp_path, pod())
    assert raised.value.reason == "FailedMount"
