"""One turn: step the engine with changes, journal both sides, and hand on the effects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from situate.core.changes import Change, Millis
from situate.core.effects import Effect
from situate.core.engine.engine import Engine
from situate.loop.journal import Journal


class EffectHandler(Protocol):
    """Carries out effects, in a real cluster or a simulated one, and reports their outcomes later, as changes."""

    def perform(self, effects: Sequence[Effect]) -> None: ...


def turn(
    engine: Engine, now: Millis, changes: Sequence[Change], handler: EffectHandler, journal: Journal | None = None
) -> list[Effect]:
    """Step once. The journal has the changes before the engine does, and the effects before the handler does."""
    if journal is not None:
        journal.heard(now, changes)
    effects = engine.step(now, changes)
    if journal is not None:
        journal.decided(effects)
    handler.perform(effects)
    return effects
