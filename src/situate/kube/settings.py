"""The settings of a scheduler process: its flags, its configuration, and how fast it decides."""

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
"""The lease of the scheduler inside `situate up`: a scheduler that uses it stands by for that one."""
BATCH_S: Final = 10.0
PAUSE_S: Final = 5.0
"""At the rate limit, decide at most BATCH_S seconds' worth of binds in one step, with at most PAUSE_S seconds' worth in
flight: together less than a bind may take before it counts as failed (BIND_ANSWER_MS)."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A validated configuration, with the third-party plugins that it names."""

    config: KubeSchedulerConfiguration
    others: Mapping[str, type] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The parsed flags."""

    load: Callable[[], Loaded]
    """Loads the configuration again. Raises InputError or OSError."""
    config_file: Path | None = None
    kubeconfig: str | None = None
    context: str | None = None
    master: str | None = None
    guarded: bool = False
    """The server is situate's own, which checks each bind against the term of the scheduler's lease."""
    fleet: FleetRules | None = None
    """Membership in a fleet. There is no election then."""
    journal: Path | None = None
    unschedulable_limit_ms: Millis = UNSCHEDULABLE_LIMIT_MS
    """How long an unschedulable pod waits at most before a retry."""
    shadow: bool = False
    """Only watch, and compare decisions. It writes nothing, and there is no election."""
    shadow_json: bool = False
    """Print the shadow's report as JSON."""
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
    """Warnings to log at the start about flags that have no effect."""


@dataclass(frozen=True, slots=True)
class DecisionPace:
    """How many decisions to make at a time, so that binds keep up."""

    batch: int
    pause_above: int

    @staticmethod
    def at(qps: float) -> DecisionPace:
        """At this rate limit: none below 0, and kube-scheduler's 50 for 0."""
        if qps < 0:
            return DecisionPace(BATCH, PAUSE_ABOVE)
        rate = qps or 50.0
        return DecisionPace(max(1, min(BATCH, int(BATCH_S * rate))), max(1, min(PAUSE_ABOVE, int(PAUSE_S * rate))))
