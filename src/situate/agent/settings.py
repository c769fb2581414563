"""The settings of one node agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from situate.agent.desired_state import NodeConfiguration
from situate.agent.host_security import own_security
from situate.agent.pod_lifecycle import RestartBackoff
from situate.agent.security import NodeSecurity


@dataclass(frozen=True, slots=True)
class NodeSettings:
    name: str
    directory: Path
    """The agent's own: pods, its checkpoint, and a lock against a second agent."""
    labels: Mapping[str, str] = field(default_factory=dict)
    backoff: RestartBackoff = field(default_factory=RestartBackoff)
    configuration: NodeConfiguration = field(default_factory=NodeConfiguration)
    """How to renew the lease until the control plane sends its own configuration."""
    ends_pods: bool = False
    """Stop the pods when the agent is asked to stop. An agent that is killed always leaves them running."""
    fenced: bool = True
    """Stop the pods when the lease cannot be renewed, before another node may run them."""
    cluster: str = ""
    """The cluster of this node. The agent ignores a checkpoint of another cluster."""
    security: NodeSecurity = field(default_factory=own_security)
    """Which user containers run as, and which rights they can have."""
    volumes: Path | None = None
    """Where the directories of provisioned volumes are, if not below `directory`."""
    authorities: tuple[bytes, ...] = ()
    """CA certificates (DER) for clients that ask for logs. If empty, the agent serves no logs."""
