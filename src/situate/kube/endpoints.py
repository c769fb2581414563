"""The endpoints of one scheduler process: its health, metrics and configuration. Read-only."""

from __future__ import annotations

from typing import Protocol

import msgspec

from situate.core.config.encode import encode
from situate.core.config.resolve import complete
from situate.core.config.types import KubeSchedulerConfiguration
from situate.kube.client import Client
from situate.kube.delegated import DelegatedAuthentication, DelegatedAuthorization
from situate.kube.session import Session
from situate.kube.settings import Settings
from situate.kube.shadow import ShadowReport
from situate.kube.status_server import Page, StatusServer
from situate.loop.election import Elector
from situate.loop.health import PING, Check
from situate.loop.logs import Log
from situate.loop.metrics import CONTENT_TYPE, Metrics
from situate.wire.errors import InputError
from situate.wire.published import without_secrets

_log = Log(__name__)


class ProcessState(Protocol):
    """The part of a Process that the endpoints read."""

    @property
    def session(self) -> Session | None: ...

    @property
    def elector(self) -> Elector | None: ...

    @property
    def config(self) -> KubeSchedulerConfiguration: ...

    @property
    def metrics(self) -> Metrics: ...

    @property
    def report(self) -> ShadowReport: ...

    @property
    def delayed(self) -> bool:
        """Whether it lists nothing before it leads."""

    @property
    def stopping(self) -> bool: ...


class Endpoints:
    def __init__(self, process: ProcessState, settings: Settings) -> None:
        self._process = process
        self._settings = settings

    def serving(self, who: Client, what: Client) -> StatusServer | None:
        """A server to enter; None without a port. `who` authenticates, `what` authorizes."""
        where, settings = self._settings.serving, self._settings
        if where is None:
            return None
        authorization = DelegatedAuthorization(what, settings.always_allowed, settings.allow_ttl_s, settings.deny_ttl_s)
        return StatusServer(
            where, DelegatedAuthentication(who, settings.token_ttl_s), authorization, self.checks(), self.pages()
        )

    async def look_up(self, serving: StatusServer, who: Client) -> None:
        """Look up the client certificate authorities, unless a flag sets them. Raises InputError."""
        where = self._settings.serving
        if not self._settings.look_up_authorities or where is None or where.client_ca_file:
            return
        problem = await serving.look_up_authorities(who)
        if problem and not self._settings.tolerate_lookup_failure:
            raise InputError(f"cannot look up the client certificate authorities: {problem}")
        if problem:
            _log.warning("Accepting no client certificates: cannot look up their authorities", err=problem)

    # -- health ----------------------------------------------------------------------------------------------------

    def checks(self) -> dict[str, list[Check]]:
        election = Check("leaderElection", self._unhealthy_election)
        shutdown = Check("shutdown", lambda: "process is shutting down" if self._process.stopping else "")
        synced = Check("informer-sync", self._unsynced)
        handled = Check("sched-handler-sync", self._unhandled)
        return {"healthz": [PING, election], "livez": [PING], "readyz": [PING, election, shutdown, synced, handled]}

    def _unhealthy_election(self) -> str:
        elector = self._process.elector
        return "" if elector is None else elector.health()

    def _unsynced(self) -> str:
        session = self._process.session
        if session is None:
            return "" if self._process.delayed else "nothing has been listed yet"
        names = [one.name for one in session.watching.shown() if not one.synced]
        return f"{len(names)} informers not started yet: {names}" if names else ""

    def _unhandled(self) -> str:
        session = self._process.session
        return "handlers are not fully synchronized" if session is not None and session.drive.steps == 0 else ""

    # -- pages -----------------------------------------------------------------------------------------------------

    def pages(self) -> dict[str, Page]:
        found: dict[str, Page] = {
            "/configz": self.configz,
            "/metrics": lambda: (CONTENT_TYPE, self._process.metrics.render()),
        }
        if self._settings.shadow:
            found["/shadow"] = lambda: ("application/json", self._process.report.json())
        return found

    def configz(self) -> tuple[str, bytes]:
        config = without_secrets(complete(self._process.config))
        return "application/json", msgspec.json.encode({"componentconfig": encode(config)})
