"""Where the files of containers are that run as another user than their node's agent."""

from pathlib import Path


def homes_beside(directory: Path) -> Path:
    """`.situate-pods` beside `.situate`, which is closed to other users."""
    return directory.absolute().with_name(f"{directory.absolute().name}-pods")
