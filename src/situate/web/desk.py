"""The questions that the page asks. The commands answer them: the page shows what `-o json` of a command prints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import msgspec

from situate.core.devices.template_claims import Templates
from situate.core.model.pod import Pod
from situate.core.state.cluster import Cluster
from situate.core.versions import KubernetesRules
from situate.kube.client import Client

Answer: TypeAlias = dict[str, Any]


class Profiles(Protocol):
    """The profiles of the cluster's schedulers, and the version that they follow."""

    @property
    def rules(self) -> KubernetesRules: ...


@dataclass(frozen=True, slots=True)
class PodInQuestion:
    """A pod, and what is recorded of it: itself as stored, its events, its PlacementDecision."""

    pod: Pod
    records: Sequence[Mapping[str, Any]]
    node: str = ""
    """A node to report in full."""


class SimulationQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What `situate simulate` is told by flags. Texts are as there."""

    manifest: str = ""
    """The workloads to come; empty: only what waits already."""
    arrivals: str = ""
    pods: int | None = None
    duration: str = ""
    seed: int = 0
    default: bool = True
    """Whether to compare kube-scheduler's defaults."""
    cluster: bool = False
    """Whether to compare what the cluster's schedulers are configured with."""
    policy: str = ""
    """A KubeSchedulerConfiguration to compare; empty: none."""


@dataclass(frozen=True, slots=True)
class Simulation:
    answer: Answer
    report: str
    """The page with plots, as HTML."""


class Desk(Protocol):
    """Raises InputError for a question that makes no sense, and ApiError for what the API server refuses."""

    async def profiles(self, client: Client) -> Profiles: ...

    async def pod(self, client: Client, namespace: str, name: str, node: str) -> PodInQuestion: ...

    def why(self, cluster: Cluster, profiles: Profiles, asked: PodInQuestion, templates: Templates) -> Answer: ...

    def recorded(self, asked: PodInQuestion) -> Answer:
        """What is known without the nodes."""

    async def room(self, client: Client, manifest: str) -> Answer:
        """Where there is room for a pod like this."""

    async def drain(self, client: Client, nodes: Sequence[str]) -> Answer: ...

    async def survive(self, client: Client) -> Answer:
        """The loss of each zone."""

    async def simulate(self, client: Client, asked: SimulationQuestion, stopped: Callable[[], bool]) -> Simulation:
        """Workloads over time, under several configurations. It ends soon after `stopped`, with InputError."""
