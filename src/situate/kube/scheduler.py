"""`situate scheduler`, once its flags are read: finds the cluster, and runs the process on it."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Callable
from typing import Final

from situate.kube.kubeconfig import find_access
from situate.kube.process import Process
from situate.kube.settings import Settings
from situate.loop.logs import set_up

COLLECTIONS: Final = (10_000, 20, 20)
"""How often garbage is looked for: there is little, and looking at Python's own pace takes 3 % of the time."""


def run(settings: Settings) -> int:
    """Schedule until told to stop; the exit code. Raises InputError for what cannot be used."""
    set_up(settings.logging)
    gc.set_threshold(*COLLECTIONS)
    loaded = settings.load()
    access = find_access(
        settings.kubeconfig or loaded.config.client_connection.kubeconfig or None, settings.context, settings.master
    )
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(Process(settings, loaded, access).run())


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    if sys.platform != "linux":
        return None
    import uvloop

    return uvloop.new_event_loop
