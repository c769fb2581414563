"""`python -m tools.image [--name NAME] [--output FILE]`: the command line of this package, which `make image` calls."""

import argparse
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from situate import __version__
from tools.image import application, debian, layout
from tools.image.debian import ImageError

BUILD = Path(__file__).resolve().parents[2] / "build" / "image"
NAME = f"localhost/situate:{__version__}"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
# What the Dockerfile's image has, too.
PROCESS: dict[str, Any] = {
    "User": f"{application.USER}:{application.USER}",
    "Entrypoint": ["situate"],
    "Cmd": ["--help"],
    "Env": ["PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp", "LANG=C.UTF-8", "PYTHONDONTWRITEBYTECODE=1"],
    "ExposedPorts": {"10259/tcp": {}},
    "Labels": {"org.opencontainers.image.title": "situate", "org.opencontainers.image.version": __version__},
}


def build(name: str, output: Path, work: Path = BUILD, cache: Path = BUILD) -> layout.Image:
    """Everything in `work` is made anew; what is downloaded stays in `cache`."""
    absent = debian.missing()
    if absent:
        raise ImageError(absent)
    architecture = ARCHITECTURES.get(platform.machine())
    if architecture is None:
        raise ImageError(f"{platform.machine()} is none of {', '.join(ARCHITECTURES)}")
    python, own = debian.python_version(), f"{sys.version_info.major}.{sys.version_info.minor}"
    if python != own:
        raise ImageError(f"apt has Python {python}, and .venv {own}: make clean, then make PYTHON=python{python} image")
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "0")
    base, top = work / "base", work / "application"
    for directory in (base, top):
        shutil.rmtree(directory, ignore_errors=True)
    debian.unpack(debian.download(debian.python_packages(python), cache / "packages"), base)
    (base / "usr" / "bin" / "python3").symlink_to(f"python{python}")
    application.install(application.wheels(work / "wheel", cache / "wheels"), top, python)
    for directory in (base / "usr" / "lib" / f"python{python}", top / "usr"):
        _compile(base, directory, python)
    _check(base, top, python)
    layers = [
        layout.layer(base, "Debian's packages", int(epoch)),
        layout.layer(top, f"situate {__version__} and its libraries", int(epoch)),
    ]
    made = layout.image(layers, name, architecture, PROCESS, int(epoch))
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_bytes(made.archive)
    return made


def _compile(base: Path, directory: Path, python: str) -> None:
    """Bytecode that is never compared with its source: the root file system of a container may be read-only."""
    words = ("-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", "-p", "/", "-s")
    stripped = base if directory.is_relative_to(base) else directory.parent
    _python(base, python, *words, str(stripped), str(directory))


def _check(base: Path, top: Path, python: str) -> None:
    """The scheduler can be imported with what is in the image, and nothing else."""
    packages = top / "usr" / "local" / "lib" / f"python{python}" / "dist-packages"
    code = f"import sys; sys.path.append({str(packages)!r}); import situate.kube.scheduler, situate.cli"
    _python(base, python, "-c", code)


def _python(base: Path, python: str, *words: str) -> None:
    """Run the image's own Python, with its own libraries, where it was unpacked."""
    [loader] = base.glob("usr/lib/*/ld-linux-*.so.*")
    command = [str(loader), "--library-path", str(loader.parent), str(base / "usr" / "bin" / f"python{python}"), "-B"]
    environment = {"PYTHONHOME": str(base / "usr"), "PYTHONHASHSEED": "0", "PYTHONNOUSERSITE": "1"}
    done = subprocess.run([*command, *words], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ImageError(f"the image's Python: {(done.stderr or done.stdout).strip()}")


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tools.image", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--name", default=NAME, help="the image's name, with its tag")
    parser.add_argument("--output", type=Path, default=BUILD / "situate.tar", help="the archive")
    given = parser.parse_args(words)
    try:
        made = build(given.name, given.output)
    except ImageError as error:
        print(f"image: {error}", file=sys.stderr)
        return 1
    print(f"{given.name} {made.digest}")
    where = given.output.relative_to(Path.cwd()) if given.output.is_relative_to(Path.cwd()) else given.output
    print(f"{len(made.archive) // 2**20} MiB in {where}. To load it: ctr -n k8s.io images import {where}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
