"""The agent of this machine as a node: pods are processes here."""

import hashlib
import os
import stat
from pathlib import Path
from typing import Final

from situate.agent import cgroups
from situate.agent.agent import AgentError, NodeAgent
from situate.agent.control_plane import ControlPlane
from situate.agent.host_security import hide_process, trust_statement
from situate.agent.lease import FENCE
from situate.agent.process import ProcessRuntime, ProcessSettings
from situate.agent.settings import NodeSettings
from situate.loop.logs import Log

PODS: Final = "pods"
"""Below the node's directory."""


_log = Log(__name__)


def process_agent(plane: ControlPlane, settings: NodeSettings, homes: Path) -> NodeAgent:
    """`homes`: where the files of containers are that run as another user than the agent, because nobody else may enter
    its directory. Raises AgentError."""
    hide_process()
    mark = hashlib.sha256(str(settings.directory.absolute()).encode()).hexdigest()[:12]
    groups, limits = cgroups.find(name=f"situate-{mark}"), ProcessSettings(fence=settings.directory / FENCE)
    other = settings.security.user != os.geteuid()
    _log.warning(f"This machine is a node: {trust_statement(settings.security)}", node=settings.name)
    try:
        if other:
            _make_homes(homes)
        return NodeAgent(
            plane,
            settings,
            lambda changed: ProcessRuntime(
                settings.directory / PODS, changed, groups=groups, settings=limits, homes=homes if other else None
            ),
        )
    except OSError as error:
        raise AgentError(f"{error.filename}: {error.strerror}") from None


def _make_homes(homes: Path) -> None:
    """Containers may enter it, and list nothing."""
    homes.mkdir(parents=True, exist_ok=True)
    found = homes.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise AgentError(f"{homes} is not a directory of user {os.geteuid()}: move it away")
    homes.chmod(0o711)
