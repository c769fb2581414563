"""Installs the packages of one of pyproject.toml's extras, and not situate itself: `extra.py site python`."""

import subprocess
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


def main(extra: str, python: str) -> int:
    packages = tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"][extra]
    return subprocess.run(
        [python, "-m", "pip", "install", "--disable-pip-version-check", "--quiet", *packages], check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
