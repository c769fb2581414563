"""The scheduler's image, as far as it goes without packages: the archive is what OCI says, and the same for the same
files. tests/kubernetes/test_deployed.py builds the whole and runs it."""

import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tools import sbom
from tools.image import application, debian, layout
from tools.image.__main__ import PROCESS, main

ROOT = Path(__file__).parents[2]
NAME = "localhost/situate:1"
PARAGRAPH = """Package: libreadline8
Version: 8.2-1.3
Pre-Depends: dpkg (>= 1.15)
Depends: readline-common, libc6 (>= 2.33), libtinfo6:any (>= 6) | other
Description: a library
 Depends: on nothing
Section: contrib/libs"""
IMPORTED = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in sys.argv[1:]:
            raise ImportError(name)
sys.meta_path.insert(0, Absent())
import situate.kube.scheduler
"""


def tree(root: Path, order: tuple[str, ...], mtime: int) -> Path:
    for name in order:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
        path.chmod(0o775 if name.startswith("bin/") else 0o664)
        os.utime(path, (mtime, mtime))
    (root / "lib").symlink_to("bin")
    (root / "tmp").mkdir(mode=0o700)
    return root


def blobs(archive: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        files = {one.name: tar.extractfile(one) for one in tar if one.isfile()}
    return {name: file.read() for name, file in files.items() if file is not None}


def made(root: Path) -> layout.Image:
    return layout.image([layout.layer(root, "a test", 0)], NAME, "amd64", PROCESS, 0)


def test_the_same_files_make_the_same_bytes(tmp_path: Path) -> None:
    first = made(tree(tmp_path / "a", ("bin/one", "etc/two"), 1_000))
    second = made(tree(tmp_path / "b", ("etc/two", "bin/one"), 2_000))
    assert first == second
    (tmp_path / "b" / "bin" / "one").chmod(0o600)
    assert made(tmp_path / "b").digest != first.digest


def test_a_layer_has_no_owner_time_or_mode_of_this_machine(tmp_path: Path) -> None:
    layer = layout.layer(tree(tmp_path, ("bin/one", "etc/two"), 1_000), "a test", 7)
    whole = gzip.decompress(layer.compressed)
    assert layer.diff_id == f"sha256:{hashlib.sha256(whole).hexdigest()}"
    with tarfile.open(fileobj=io.BytesIO(whole)) as tar:
        members = {one.name: one for one in tar}
    assert list(members) == ["bin", "bin/one", "etc", "etc/two", "lib", "tmp"]
    assert {(one.uid, one.gid, one.uname, one.gname, one.mtime) for one in members.values()} == {(0, 0, "", "", 7)}
    modes = {name: oct(one.mode) for name, one in members.items()}
    assert modes["tmp"] == "0o1777"
    assert (modes["bin"], modes["bin/one"], modes["etc/two"]) == ("0o755", "0o755", "0o644")
    assert (members["lib"].issym(), members["lib"].linkname) == (True, "bin")


def test_the_archive_is_an_oci_image_layout(tmp_path: Path) -> None:
    image = made(tree(tmp_path, ("bin/one",), 0))
    files = blobs(image.archive)
    assert json.loads(files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}

    def of(descriptor: dict[str, Any]) -> bytes:
        data = files.pop(f"blobs/sha256/{descriptor['digest'].removeprefix('sha256:')}")
        assert (len(data), layout.digest(data)) == (descriptor["size"], descriptor["digest"])
        return data

    [listed] = json.loads(files["index.json"])["manifests"]
    assert listed["digest"] == image.digest
    assert listed["annotations"]["io.containerd.image.name"] == NAME
    manifest = json.loads(of(listed))
    config, [layer] = json.loads(of(manifest["config"])), manifest["layers"]
    assert config["rootfs"]["diff_ids"] == [layout.digest(gzip.decompress(of(layer)))]
    assert config["config"] == PROCESS
    assert sorted(files) == ["index.json", "oci-layout"], "nothing is in it that nothing refers to"


def test_the_process_is_that_of_the_dockerfile() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text()
    for line in ("USER {User}", "ENTRYPOINT {Entrypoint}", "CMD {Cmd}"):
        assert line.format(**PROCESS).replace("'", '"') in dockerfile
    assert [f"EXPOSE {port.removesuffix('/tcp')}" in dockerfile for port in PROCESS["ExposedPorts"]] == [True]
    for variable in ("HOME=/tmp", "PYTHONDONTWRITEBYTECODE=1"):
        assert variable in dockerfile
        assert variable in PROCESS["Env"]


def test_a_package_is_read_as_apt_describes_it() -> None:
    package = debian.parsed(PARAGRAPH)
    assert (package.name, package.version, package.section) == ("libreadline8", "8.2-1.3", "libs")
    assert package.depends == ("dpkg", "readline-common", "libc6", "libtinfo6")


def test_a_scheduler_needs_none_of_what_is_left_out() -> None:
    needed, whole = sbom.installed(application.CONTROL_PLANE_ONLY), sbom.installed()
    assert whole.keys() - needed.keys() >= application.CONTROL_PLANE_ONLY
    modules = ("apsw", "google.protobuf", "jsonpatch", "jwt")
    subprocess.run([sys.executable, "-c", IMPORTED, *modules], cwd=ROOT / "src", check=True, timeout=120)


def test_without_debians_tools_it_says_so_in_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["--output", str(tmp_path / "image.tar")]) == 1
    said = capsys.readouterr().err
    assert said.startswith("image: not here: apt-cache, apt-get, dpkg-deb. ")
    assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
