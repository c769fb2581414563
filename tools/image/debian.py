"""The image's base: Python and the C libraries, unpacked from Debian's packages into a directory."""

import hashlib
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

NEEDED = ("apt-cache", "apt-get", "dpkg-deb")
FIRST = ("base-files", "libstdc++6")
"""Beside Python. The first has /etc/os-release and the texts of licences; numpy and uvloop need the second."""
FOLLOWED = frozenset({"libs", "oldlibs", "python"})
"""The archive sections whose packages are needed at run time. The others, such as perl, only serve installation."""
MERGED = ("bin", "lib", "lib64", "sbin")
"""Links into /usr, on every Debian of today. Packages still have files on both sides of them."""
LEFT_OUT = ("usr/share/man", "usr/share/locale", "usr/share/lintian", "usr/share/info", "usr/lib/*/gconv")


class ImageError(Exception):
    """The image cannot be built here, and why."""


@dataclass(frozen=True, slots=True)
class Package:
    name: str
    version: str
    section: str
    depends: tuple[str, ...]


def missing() -> str | None:
    """Why no image can be built here, or None."""
    absent = [name for name in NEEDED if shutil.which(name) is None]
    if absent:
        return f"not here: {', '.join(absent)}. An image is built of Debian's packages; elsewhere, use the Dockerfile"
    return None


def python_version() -> str:
    """The version of Debian's Python, such as 3.11."""
    wanted = " ".join(one for described in _described(["python3-minimal"]) for one in described.depends)
    found = re.search(r"\bpython(3\.\d+)-minimal\b", wanted)
    if found is None:
        raise ImageError("apt knows no Python: run apt-get update")
    return found[1]


def python_packages(python: str) -> list[Package]:
    """What the base consists of: Python and its libraries, and theirs."""
    return packages([*FIRST, f"python{python}-minimal", f"libpython{python}-stdlib"])


def packages(first: Sequence[str]) -> list[Package]:
    """These packages, and the libraries that they need."""
    found: dict[str, Package] = {}
    waiting = set(first)
    while waiting:
        described = [one for one in _described(sorted(waiting)) if one.name in first or one.section in FOLLOWED]
        found |= {one.name: one for one in described}
        waiting = {name for one in described for name in one.depends} - found.keys()
    absent = [name for name in first if name not in found]
    if absent:
        raise ImageError(f"apt knows no {', '.join(absent)}: run apt-get update")
    return sorted(found.values(), key=lambda one: one.name)


def parsed(text: str) -> Package:
    """One paragraph of a package list. Of alternatives, the first."""
    fields = dict(re.findall(r"^([A-Z][\w-]*): *(.*)$", text, re.MULTILINE))
    wanted = ", ".join(fields[key] for key in ("Pre-Depends", "Depends") if key in fields)
    names = (re.match(r"[a-z0-9][a-z0-9+.-]+", one.strip()) for one in wanted.split(","))
    return Package(
        fields["Package"],
        fields["Version"],
        fields["Section"].rpartition("/")[2],
        tuple(one[0] for one in names if one),
    )


def download(wanted: Iterable[Package], cache: Path) -> dict[str, Path]:
    """The archives of these packages, by name. Those in the cache that are whole are not fetched again."""
    cache.mkdir(parents=True, exist_ok=True)
    named = [f"{one.name}={one.version}" for one in wanted]
    lines = _output("apt-get", "--print-uris", "download", *named).splitlines()
    found = {}
    for line in lines:
        _, file, _, checksum = line.split()
        found[file.partition("_")[0]] = (cache / file, checksum.removeprefix("SHA256:"))
    absent = [name for name, (path, checksum) in found.items() if _sha256(path) != checksum]
    if absent:
        _output("apt-get", "download", "-qq", *(one for one in named if one.partition("=")[0] in absent), cwd=cache)
    broken = [path.name for path, checksum in found.values() if _sha256(path) != checksum]
    if broken:
        raise ImageError(f"the checksum in apt's lists is another: {', '.join(broken)}")
    return {name: path for name, (path, _) in sorted(found.items())}


def unpack(archives: Mapping[str, Path], root: Path) -> None:
    """Without documentation. What is there is listed in var/lib/dpkg/status.d, where vulnerability scanners look."""
    status = root / "var" / "lib" / "dpkg" / "status.d"
    status.mkdir(parents=True)
    for name, archive in archives.items():
        _output("dpkg-deb", "--extract", str(archive), str(root))
        (status / name).write_text(_output("dpkg-deb", "--field", str(archive)))
    for name in MERGED:
        if (root / name).is_dir():  # dpkg-deb makes a directory where there was a link
            shutil.copytree(root / name, root / "usr" / name, symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(root / name)
        (root / name).symlink_to(f"usr/{name}")
    for pattern in LEFT_OUT:
        for path in root.glob(pattern):
            shutil.rmtree(path)
    for path in root.glob("usr/share/doc/*/*"):
        if path.name != "copyright":
            path.unlink() if path.is_symlink() or path.is_file() else shutil.rmtree(path)


def _described(names: Sequence[str]) -> list[Package]:
    """Those of them that there are; a virtual one has no description."""
    done = subprocess.run(
        ["apt-cache", "show", "--no-all-versions", *names], capture_output=True, text=True, check=False
    )
    return [parsed(text) for text in done.stdout.split("\n\n") if text.strip()]


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""


def _output(*command: str, cwd: Path | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ImageError(f"{' '.join(command[:2])}: {done.stderr.strip() or f'exit code {done.returncode}'}")
    return done.stdout
