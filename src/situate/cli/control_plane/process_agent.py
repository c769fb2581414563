"""The agent of this machine as a node: pods are processes here."""

import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Final

from situate.agent import cgroups
from situate.agent.agent import AgentError, NodeAgent
from situate.agent.control_plane import ControlPlane
from situate.agent.host_security import hide_process, trust_statement
from situate.agent.lease import FENCE
from situate.agent.process import ProcessRuntime, ProcessSettings
from situate.agent.settings import NodeSettings
from situate.agent.volumes import closed_parent
from situate.cli.control_plane.homes import homes_beside, shared_homes, volumes_beside
from situate.loop.logs import Log

PODS: Final = "pods"
"""Below the node's directory."""


_log = Log(__name__)


def process_agent(plane: ControlPlane, settings: NodeSettings, top: Path) -> NodeAgent:
    """`top`: the directory with everything of the cluster or node. Raises AgentError."""
    hide_process()
    groups = cgroups.find(name=f"situate-{shared_homes(top).name}")
    limits = ProcessSettings(fence=settings.directory / FENCE)
    _log.warning(f"This machine is a node: {trust_statement(settings.security)}", node=settings.name)
    try:
        homes = _homes(top, settings.security.user)
        return NodeAgent(
            plane,
            settings if homes is None else replace(settings, volumes=volumes_beside(homes)),
            lambda changed: ProcessRuntime(
                settings.directory / PODS, changed, groups=groups, settings=limits, homes=homes
            ),
        )
    except OSError as error:
        raise AgentError(f"{error.filename}: {error.strerror}") from None


def _homes(top: Path, user: int) -> Path | None:
    """Where the containers' files are, if not in the agent's own directory."""
    if user == os.geteuid():
        return None
    beside, shared = homes_beside(top), shared_homes(top)
    if closed_parent(beside, user) is None:
        _make_open(beside)
        return beside
    _make_open(shared.parent)
    _make_open(shared)
    return shared


def _make_open(directory: Path) -> None:
    """Make a directory that everybody may enter, and only its owner may list."""
    directory.mkdir(parents=True, exist_ok=True)
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise AgentError(f"{directory} is not a directory of user {os.geteuid()}: move it away")
    directory.chmod(0o711)
