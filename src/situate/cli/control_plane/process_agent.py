"""The agent of this machine as a node: pods are processes here."""

from typing import Final

from situate.agent import cgroups
from situate.agent.agent import NodeAgent
from situate.agent.control_plane import ControlPlane
from situate.agent.lease import FENCE
from situate.agent.process import ProcessRuntime, ProcessSettings
from situate.agent.settings import NodeSettings

PODS: Final = "pods"
"""Below the node's directory."""


def process_agent(plane: ControlPlane, settings: NodeSettings) -> NodeAgent:
    groups, limits = cgroups.find(), ProcessSettings(fence=settings.directory / FENCE)
    return NodeAgent(
        plane,
        settings,
        lambda changed: ProcessRuntime(settings.directory / PODS, changed, groups=groups, settings=limits),
    )
