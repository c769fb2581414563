"""kill -9 of a process that writes: no acknowledged write is lost, and no revision is given twice."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

from situate.store.entries import Revision
from situate.store.sqlite.store import SqliteStore
from store import writer_process

KILLS = 10
LINES_BEFORE_KILL = 150


def written_until_killed(path: Path, life: int) -> list[tuple[str, str, Revision]]:
    """What it said was acknowledged: who wrote, what, at which revision. Also what it said while being killed."""
    command = [sys.executable, str(Path(writer_process.__file__)), str(path), str(life)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": ""}) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(LINES_BEFORE_KILL + 37 * life)]
        process.send_signal(signal.SIGKILL)
        lines += process.stdout.readlines()
    words = [line.decode().split() for line in lines if line.endswith(b"\n")]
    return [(who, value, Revision(int(revision))) for who, value, revision in words]


async def found(path: Path) -> tuple[dict[str, tuple[str, Revision]], Revision]:
    store = await SqliteStore.open(path)
    try:
        page = await store.scan("/")
        return {entry.key: (entry.value.decode(), entry.modified) for entry in page.entries}, page.revision
    finally:
        await store.aclose()


def test_no_acknowledged_write_is_lost_and_revisions_never_go_back(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    newest = Revision(0)
    for life in range(KILLS):
        said = written_until_killed(path, life)
        revisions = [revision for _, _, revision in said]
        assert len(set(revisions)) == len(revisions)
        assert min(revisions) > newest
        entries, newest = asyncio.run(found(path))
        assert newest >= max(revisions)
        for who, value, revision in said:
            there, modified = entries[f"/{who}"]
            assert entries[f"/{who}/twin"] == (there, modified)
            assert modified >= revision
            assert int(there.split("/")[0]) == life
            assert int(there.split("/")[1]) >= int(value.split("/")[1])
