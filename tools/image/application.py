"""The image's second layer: situate's wheel, and the libraries that a scheduler needs."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from packaging.utils import parse_wheel_filename

from situate import __version__
from tools import sbom
from tools.image.debian import ImageError

ROOT = Path(__file__).resolve().parents[2]
CONTROL_PLANE_ONLY = frozenset({"apsw", "jsonpatch", "protobuf", "pyjwt"})
"""What only `situate up`, `server` and their relatives need, and what needs nobody else."""
OLDEST = "315532800"
"""1980, before which no zip file has a time."""
PROGRAM = """#!/usr/bin/python3
import sys
from situate.cli import main
sys.exit(main())
"""
USER = 65532
ACCOUNTS = {
    "etc/passwd": f"root:x:0:0:root:/root:/sbin/nologin\nsituate:x:{USER}:{USER}:situate:/tmp:/sbin/nologin\n",
    "etc/group": f"root:x:0:\nsituate:x:{USER}:\n",
}


def libraries() -> list[str]:
    """What a scheduler needs, in the versions that are installed here and were tested: name==version."""
    return [f"{name}=={one.version}" for name, one in sbom.installed(CONTROL_PLANE_ONLY).items() if name != sbom.OURS]


def wheels(work: Path, cache: Path) -> list[Path]:
    """Directories with situate's wheel, built now in `work`, and those of the libraries, fetched once."""
    shutil.rmtree(work, ignore_errors=True)
    _run("hatchling", "build", "--target", "wheel", "--directory", str(work))
    cache.mkdir(parents=True, exist_ok=True)
    parsed = (parse_wheel_filename(one.name) for one in cache.glob("*.whl"))
    there = {f"{name}=={version}" for name, version, *_ in parsed}
    absent = [one for one in libraries() if one not in there]
    if absent:
        _pip("download", "--dest", str(cache), "--only-binary", ":all:", *absent)
    return [work, cache]


def install(wheels: Sequence[Path], root: Path, python: str) -> None:
    """Into /usr/local, where Debian's Python looks for what Debian did not install."""
    packages = root / "usr" / "local" / "lib" / f"python{python}" / "dist-packages"
    sources = [word for one in wheels for word in ("--find-links", str(one))]
    named = [*libraries(), f"{sbom.OURS}=={__version__}"]
    _pip("install", "--no-compile", "--no-index", "--target", str(packages), *sources, *named)
    # Programs whose first line names this machine's Python, and the checksums of those programs.
    shutil.rmtree(packages / "bin", ignore_errors=True)
    for path in packages.glob("*.dist-info/RECORD"):
        path.unlink()
    for path in sorted(packages.glob("*/**/tests")):
        shutil.rmtree(path, ignore_errors=True)
    program = root / "usr" / "local" / "bin" / sbom.OURS
    program.parent.mkdir(parents=True)
    program.write_text(PROGRAM)
    program.chmod(0o755)
    for name, text in ACCOUNTS.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _pip(command: str, *words: str) -> None:
    _run("pip", command, "--disable-pip-version-check", "--quiet", "--no-deps", *words)


def _run(module: str, *words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", module, *words],
        cwd=ROOT,
        env=os.environ | {"SOURCE_DATE_EPOCH": OLDEST},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ImageError(f"{module} {words[0]}: {done.stderr.strip()}")
