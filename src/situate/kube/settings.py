"""What a scheduler process is started with: its flags and its configuration, and the pace that follows from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from situate.core.changes import Millis
from situate.core.config.types import KubeSchedulerConfiguration
from situate.core.engine.engine import BATCH
from situate.core.queue.queue import UNSCHEDULABLE_LIMIT_MS
from situate.kube.delegated import ALWAYS_ALLOWED, TTL_S
from situate.kube.fleet import FleetRules
from situate.kube.status_server import ListenSettings
from situate.loop.drive import PAUSE_ABOVE
from situate.loop.logs import Logging

OWN_LEASE: Final = ("kube-system", "situate-scheduler")
"""Namespace and name of the lease of the scheduler inside `situate up`: who elects by it stands by for that one."""
BATCH_S: Final = 10.0
PAUSE_S: Final = 5.0
"""How many seconds of binds, at the rate that is allowed, are decided in one step, and may be under way before another:
together less than a bind may take before it counts as failed (BIND_ANSWER_MS)."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration that was read and validated, with the plugins of others that it names."""

    config: KubeSchedulerConfiguration
    others: Mapping[str, type] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the flags come to."""

    load: Callable[[], Loaded]
    """Reads the configuration anew. Raises InputError or OSError."""
    config_file: Path | None = None
    kubeconfig: str | None = None
    context: str | None = None
    master: str | None = None
    guarded: bool = False
    """Whether the server is situate's own, which checks each bind against the term of the scheduler's lease."""
    fleet: FleetRules | None = None
    """One of several that share the work. Nobody is elected then."""
    journal: Path | None = None
    unschedulable_limit_ms: Millis = UNSCHEDULABLE_LIMIT_MS
    """After how long an unschedulable pod is tried again for no reason."""
    shadow: bool = False
    """Only look on, and compare. Nothing is written then, and nobody is elected."""
    shadow_json: bool = False
    """Whether what a shadow says when it stops is for programs."""
    serving: ListenSettings | None = None
    authentication_kubeconfig: str | None = None
    authorization_kubeconfig: str | None = None
    look_up_authorities: bool = True
    tolerate_lookup_failure: bool = True
    always_allowed: Sequence[str] = ALWAYS_ALLOWED
    token_ttl_s: float = TTL_S
    allow_ttl_s: float = TTL_S
    deny_ttl_s: float = TTL_S
    logging: Logging = field(default_factory=Logging)
    said: Sequence[str] = ()
    """What to say at the start about flags that have no effect."""


@dataclass(frozen=True, slots=True)
class DecisionPace:
    """How fast to decide, so that binds keep up."""

    batch: int
    pause_above: int

    @staticmethod
    def at(qps: float) -> DecisionPace:
        """At so many requests a second; there is no limit below 0, and at 0 there is kube-scheduler's own, 50."""
        if qps < 0:
            return DecisionPace(BATCH, PAUSE_ABOVE)
        rate = qps or 50.0
        return DecisionPace(max(1, min(BATCH, int(BATCH_S * rate))), max(1, min(PAUSE_ABOVE, int(PAUSE_S * rate))))
