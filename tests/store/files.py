"""What is in a folder, and what this process has open."""

from pathlib import Path


def names_in(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


def open_handles() -> int:
    return len(names_in(Path("/proc/self/fd")))


def file_of(handle: int) -> Path:
    return Path(f"/proc/self/fd/{handle}").readlink()
