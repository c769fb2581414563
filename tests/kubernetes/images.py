"""Container images without a registry: an archive with one layer, written here, from files of this machine."""

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

Files = Mapping[str, tuple[bytes, int]]
"""Contents and modes, by path."""

APPLETS = (
    "cat date echo false head hostname httpd id ls mkdir nc ps rm sh sleep stty tail tar test touch tr true wc wget"
)


def busybox(path: Path, name: str) -> Path:
    """An image of busybox, from the system's static one."""
    files = {"bin/busybox": (Path("/usr/bin/busybox").read_bytes(), 0o755)}
    links = {f"bin/{one}": "busybox" for one in APPLETS.split()}
    return archive(path, [name], [layer(files, links)], {"Cmd": ["/bin/sh"], "Env": ["PATH=/bin"]})


def pause(path: Path, name: str) -> Path:
    """The image of sandboxes: it sleeps until it is killed."""
    files = {"bin/busybox": (Path("/usr/bin/busybox").read_bytes(), 0o755)}
    script = 'trap "exit 0" TERM INT; while :; do sleep 3600 & wait $!; done'
    command = ["/bin/busybox", "sh", "-c", script]
    made = layer(files, {"bin/sleep": "busybox"})
    return archive(path, [name], [made], {"Entrypoint": command, "Env": ["PATH=/bin"]})


def archive(path: Path, names: Sequence[str], layers: Sequence[bytes], config: Mapping[str, object]) -> Path:
    """Write a Docker archive, which `ctr images import` reads. `layers`: the lowest first."""
    digests = [hashlib.sha256(one).hexdigest() for one in layers]
    image = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": config,
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{one}" for one in digests]},
        }
    ).encode()
    image_name = f"{hashlib.sha256(image).hexdigest()}.json"
    paths = [f"{one}/layer.tar" for one in digests]
    manifest = [{"Config": image_name, "RepoTags": [*names], "Layers": paths}]
    whole = {image_name: (image, 0o644), "manifest.json": (json.dumps(manifest).encode(), 0o644)}
    whole |= {name: (one, 0o644) for name, one in zip(paths, layers, strict=True)}
    path.write_bytes(layer(whole))
    return path


def layer(files: Files, links: Mapping[str, str] | None = None) -> bytes:
    """A tar archive of these files and symbolic links, with the directories that they are in."""
    links = links or {}
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        folders = {
            "/".join(one.split("/")[:depth]) for one in (*files, *links) for depth in range(1, one.count("/") + 1)
        }
        for one in sorted(folders | {"tmp", "etc", "proc", "sys", "dev"}):
            info = tarfile.TarInfo(one)
            info.type, info.mode = tarfile.DIRTYPE, 0o1777 if one == "tmp" else 0o755
            tar.addfile(info)
        for one, (data, mode) in files.items():
            info = tarfile.TarInfo(one)
            info.size, info.mode = len(data), mode
            tar.addfile(info, io.BytesIO(data))
        for one, where in links.items():
            info = tarfile.TarInfo(one)
            info.type, info.linkname = tarfile.SYMTYPE, where
            tar.addfile(info)
    return made.getvalue()
