"""The engine: `step(now, changes) -> effects`."""
