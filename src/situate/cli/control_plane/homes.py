"""Where the files of containers are if they run as a different user than their node's agent."""

import hashlib
from pathlib import Path
from typing import Final

SHARED: Final = Path("/var/lib/situate")


def homes_beside(directory: Path) -> Path:
    """`.situate-pods` beside `.situate`, which is closed to other users."""
    return directory.absolute().with_name(f"{directory.absolute().name}-pods")


def volumes_beside(homes: Path) -> Path:
    """The directories of volumes, which outlive their pods."""
    return homes.with_name(f"{homes.name}-volumes")


def shared_homes(directory: Path) -> Path:
    """For clusters below a directory that is closed as well, such as root's home."""
    return SHARED / hashlib.sha256(str(directory.absolute()).encode()).hexdigest()[:12]
