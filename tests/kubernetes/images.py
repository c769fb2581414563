"""Container images without a registry: an archive with one layer, written here, from files of this machine."""

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path

APPLETS = (
    "cat date echo false head hostname httpd id ls mkdir nc ps rm sh sleep stty tail tar test touch tr true wc wget"
)


def busybox(path: Path, name: str) -> Path:
    """An image of busybox, from the system's static one."""
    files = {"bin/busybox": (Path("/usr/bin/busybox").read_bytes(), 0o755)}
    links = {f"bin/{one}": "busybox" for one in APPLETS.split()}
    return archive(path, name, files, links, {"Cmd": ["/bin/sh"], "Env": ["PATH=/bin"]})


def pause(path: Path, name: str) -> Path:
    """The image of sandboxes: it sleeps until it is killed."""
    files = {"bin/busybox": (Path("/usr/bin/busybox").read_bytes(), 0o755)}
    script = 'trap "exit 0" TERM INT; while :; do sleep 3600 & wait $!; done'
    command = ["/bin/busybox", "sh", "-c", script]
    return archive(path, name, files, {"bin/sleep": "busybox"}, {"Entrypoint": command, "Env": ["PATH=/bin"]})


def archive(
    path: Path,
    name: str,
    files: Mapping[str, tuple[bytes, int]],
    links: Mapping[str, str],
    config: Mapping[str, object],
) -> Path:
    """Write a Docker archive, which `ctr images import` reads."""
    layer = _tar(files, links)
    digest = hashlib.sha256(layer).hexdigest()
    image = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": config,
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        }
    ).encode()
    image_name = f"{hashlib.sha256(image).hexdigest()}.json"
    manifest = [{"Config": image_name, "RepoTags": [name], "Layers": [f"{digest}/layer.tar"]}]
    whole = {
        image_name: (image, 0o644),
        f"{digest}/layer.tar": (layer, 0o644),
        "manifest.json": (json.dumps(manifest).encode(), 0o644),
    }
    path.write_bytes(_tar(whole, {}))
    return path


def _tar(files: Mapping[str, tuple[bytes, int]], links: Mapping[str, str]) -> bytes:
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
