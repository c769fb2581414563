"""Checks that everything says the same version, builds a release in dist/, and prints how to publish it.

`python -m tools.release`. It changes nothing outside dist/, and publishes nothing.

A release is: the wheel and the source archive (the same bytes for the same commit), a bill of materials, the notes,
which are the section of CHANGELOG.md, and SHA256SUMS.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

from situate import __version__
from tools import sbom

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
SECTION = re.compile(r"^## (\S+) \(([^)]*)\)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def sections(changelog: str) -> dict[str, tuple[str, str]]:
    """By version: its date, or `not released`, and its notes."""
    return {version: (date, notes.strip()) for version, date, notes in SECTION.findall(changelog)}


def problems(version: str, changelog: str, chart: str, *, dirty: bool, tagged: bool) -> list[str]:
    """Why this cannot be released: nothing, if it can."""
    found = []
    released = sections(changelog)
    newest = next(iter(released), "")
    if newest != version:
        found.append(f"CHANGELOG.md begins with {newest or 'no version'}, and the version is {version}")
    elif not DATE.fullmatch(released[version][0]):
        found.append(
            f"CHANGELOG.md says of {version}: {released[version][0]}; write the date: ## {version} (2026-01-31)"
        )
    elif not released[version][1]:
        found.append(f"CHANGELOG.md says nothing about {version}")
    described = yaml.safe_load(chart)
    for key in ("version", "appVersion"):
        if str(described[key]) != version:
            found.append(f"deploy/helm/situate/Chart.yaml: {key} is {described[key]}, and the version is {version}")
    if dirty:
        found.append("there are changes that are not committed")
    if tagged:
        found.append(f"the tag v{version} exists")
    return found


def git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def build(source: Path, to: Path, epoch: str) -> list[Path]:
    """The wheel and the source archive of a folder. The time of every file in them is the epoch."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--directory", str(to)],
        cwd=source,
        env=os.environ | {"SOURCE_DATE_EPOCH": epoch},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return sorted(to.iterdir())


def main() -> int:
    tagged = bool(git("tag", "--list", f"v{__version__}"))
    dirty = bool(git("status", "--porcelain"))
    changelog = (ROOT / "CHANGELOG.md").read_text()
    chart = (ROOT / "deploy" / "helm" / "situate" / "Chart.yaml").read_text()
    found = problems(__version__, changelog, chart, dirty=dirty, tagged=tagged)
    for problem in found:
        print(f"release: {problem}", file=sys.stderr)
    if found and "--dry-run" not in sys.argv:
        return 1
    shutil.rmtree(DIST, ignore_errors=True)
    os.environ["SOURCE_DATE_EPOCH"] = epoch = git("log", "-1", "--format=%ct")
    build(ROOT, DIST, epoch)
    sbom.write(DIST / f"situate-{__version__}.cdx.json")
    (DIST / "notes.md").write_text(sections(changelog)[__version__][1] + "\n")
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in sorted(DIST.iterdir())]
    (DIST / "SHA256SUMS").write_text("\n".join(sums) + "\n")
    print("\n".join(sums))
    print(f"built in dist/. To publish: git tag v{__version__}; push it; upload dist/ with the notes of dist/notes.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
