"""`situate scheduler` with its flags parsed: finds the cluster and runs the process on it."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Callable
from typing import Final, TypeAlias

from situate.kube.access import Access
from situate.kube.kubeconfig import find_access
from situate.kube.process import Process
from situate.kube.settings import Settings
from situate.loop.logs import set_up

COLLECTIONS: Final = (10_000, 20, 20)
"""Collect garbage rarely: there is little, and Python's defaults take 3 % of the time."""

Find: TypeAlias = Callable[[str | None, str | None, str | None], Access]
"""Finds the cluster by a kubeconfig, a context and an address, as `find_access` does."""


def run(settings: Settings, find: Find = find_access) -> int:
    """Schedule until stopped; the exit code. Raises InputError."""
    set_up(settings.logging)
    gc.set_threshold(*COLLECTIONS)
    loaded = settings.load()
    access = find(
        settings.kubeconfig or loaded.config.client_connection.kubeconfig or None, settings.context, settings.master
    )
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(Process(settings, loaded, access).run())


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    if sys.platform != "linux":
        return None
    import uvloop

    return uvloop.new_event_loop
