"""An agent in a process of its own, to be killed: `agent_process.py DIRECTORY POD.json`. Says `ready` when it is."""

import asyncio
import json
import sys
from pathlib import Path

from agent.world import FakePlane, agent_of, running, until


async def main() -> None:
    plane = FakePlane()
    plane.put(json.loads(Path(sys.argv[2]).read_text()))
    async with running(agent_of(plane, Path(sys.argv[1]))):
        await until(plane.is_ready)
        await until((Path(sys.argv[1]) / "pods.last").exists)
        print("ready", flush=True)
        await asyncio.Event().wait()


asyncio.run(main())
