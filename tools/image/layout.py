"""Directories as layers, and layers as an OCI image layout: https://github.com/opencontainers/image-spec.

Bytes depend on names, contents, modes and nothing else: no owners, times, or orders of this machine.
"""

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

MEDIA = "application/vnd.oci.image"
LEVEL = 6
EXECUTABLE = 0o111
OPEN_TO_ALL = ("tmp", "var/tmp")


@dataclass(frozen=True, slots=True)
class Layer:
    compressed: bytes
    diff_id: str
    """The digest of what is compressed."""
    made_by: str


@dataclass(frozen=True, slots=True)
class Image:
    archive: bytes
    digest: str
    """Of the manifest: what the image is called by, when not by a name."""


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def layer(root: Path, made_by: str, epoch: int) -> Layer:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in _below(root):
            _add(tar, path, str(path.relative_to(root)), epoch)
    whole = made.getvalue()
    return Layer(gzip.compress(whole, LEVEL, mtime=0), digest(whole), made_by)


def image(layers: Sequence[Layer], name: str, architecture: str, process: Mapping[str, Any], epoch: int) -> Image:
    """`process`: the configuration that a container of it starts with, such as Entrypoint and User."""
    created = datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    config = _json(
        {
            "created": created,
            "architecture": architecture,
            "os": "linux",
            "config": process,
            "rootfs": {"type": "layers", "diff_ids": [one.diff_id for one in layers]},
            "history": [{"created": created, "created_by": one.made_by} for one in layers],
        }
    )
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": f"{MEDIA}.manifest.v1+json",
            "config": _descriptor("config.v1+json", config),
            "layers": [_descriptor("layer.v1.tar+gzip", one.compressed) for one in layers],
        }
    )
    # By the first name containerd imports it; other tools look for the second.
    names = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name.rpartition(":")[2]}
    platform = {"architecture": architecture, "os": "linux"}
    listed = _descriptor("manifest.v1+json", manifest) | {"annotations": names, "platform": platform}
    index = {"schemaVersion": 2, "mediaType": f"{MEDIA}.index.v1+json", "manifests": [listed]}
    blobs = [config, manifest, *(one.compressed for one in layers)]
    files = {f"blobs/sha256/{digest(one).partition(':')[2]}": one for one in blobs}
    files |= {"index.json": _json(index), "oci-layout": _json({"imageLayoutVersion": "1.0.0"})}
    return Image(_archive(files), digest(manifest))


def _below(root: Path) -> Iterator[Path]:
    """Everything in a directory; each directory before what is in it."""
    for path in sorted(root.iterdir()):
        yield path
        if path.is_dir() and not path.is_symlink():
            yield from _below(path)


def _add(tar: tarfile.TarFile, path: Path, name: str, epoch: int) -> None:
    info = tarfile.TarInfo(name)
    info.mtime = epoch
    if path.is_symlink():
        info.type, info.linkname, info.mode = tarfile.SYMTYPE, str(path.readlink()), 0o777
        tar.addfile(info)
    elif path.is_dir():
        info.type, info.mode = tarfile.DIRTYPE, 0o1777 if name in OPEN_TO_ALL else 0o755
        tar.addfile(info)
    else:
        data = path.read_bytes()
        info.size, info.mode = len(data), 0o755 if path.stat().st_mode & EXECUTABLE else 0o644
        tar.addfile(info, io.BytesIO(data))


def _archive(files: Mapping[str, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name in _directories(files):
            info = tarfile.TarInfo(name)
            info.type, info.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(info)
        for name, data in sorted(files.items()):
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), 0o644
            tar.addfile(info, io.BytesIO(data))
    return made.getvalue()


def _directories(names: Iterable[str]) -> list[str]:
    parents = {str(parent) for name in names for parent in Path(name).parents}
    return sorted(parents - {"."})


def _descriptor(kind: str, data: bytes) -> dict[str, Any]:
    return {"mediaType": f"{MEDIA}.{kind}", "digest": digest(data), "size": len(data)}


def _json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
