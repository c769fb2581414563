"""What a real kube-apiserver said, and the same cluster in memory."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from server.identity.memory import Memory
from server.identity.world import objects
from situate.server.identity import secret_files
from situate.server.identity.bootstrap import bootstrap


@pytest.fixture(scope="session")
def facts() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((Path(__file__).parent / "facts.json").read_text())
    return found


@pytest.fixture(scope="session")
def first_world() -> Memory:
    """What every cluster begins with, and the small cluster of world.py. Not to be changed."""
    memory = Memory()
    asyncio.run(bootstrap(memory, "a certificate"))
    for thing in objects():
        memory.put(thing)
    return memory


@pytest.fixture
def world(first_world: Memory) -> Memory:
    return first_world.copy()


@pytest.fixture(autouse=True)
def every_look_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are looked at whenever somebody asks, so that no test has to wait."""
    monkeypatch.setattr(secret_files, "STAT_INTERVAL_S", 0.0)
