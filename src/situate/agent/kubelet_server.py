"""The agent's HTTP server, with the paths of a kubelet: the control plane asks it for logs, and to run commands in
containers, attach to them, and forward ports.

An agent in a process of its own serves over TLS, and both sides authenticate. The agent creates a key at startup and
publishes the fingerprint of its certificate in an annotation of its Node, which only the agent may write; the control
plane accepts no other. The control plane presents a client certificate of its CA with the name CLIENT_NAME; the agent
accepts no other. An agent in the server's process is asked through a pair of sockets.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from situate.agent.channels import STDERR, STDOUT, open_channels
from situate.agent.commands import Streams, run_command, send_logs
from situate.agent.log_reader import open_log
from situate.agent.pod_lifecycle import containers_of
from situate.agent.port_forward import forward_ports
from situate.agent.ports import PORTS, known_ports
from situate.agent.runtime import RunsCommands, Runtime
from situate.loop.logs import Log
from situate.server.errors import StatusError
from situate.server.http.ports import LogOptions
from situate.server.http.query import log_options
from situate.server.kubelet.connection import HEAD_BYTES, NodeConnection
from situate.server.kubelet.connector import CLIENT_NAME

PEM: Final = "serving.pem"
LIFE: Final = timedelta(days=3_650)
CLOCKS_DIFFER: Final = timedelta(days=1)
LOGS: Final = "/containerLogs/{namespace}/{pod}/{container}"
EXEC: Final = "/exec/{namespace}/{pod}/{container}"
ATTACH: Final = "/attach/{namespace}/{pod}/{container}"
PORT_FORWARD: Final = "/portForward/{namespace}/{pod}"
NO_STDIN: Final = "containers of this node have no stdin: attach without it, or use kubectl exec"
NO_COMMANDS: Final = "the runtime of this node cannot run commands in containers"
LOCAL: Final = "localhost"

_log = Log(__name__)

Pods = Callable[[], Iterable[dict[str, Any]]]
"""The pods of the node."""


class Endpoint(NamedTuple):
    """The port of the server and the fingerprint of its certificate."""

    port: int
    fingerprint: str


class KubeletServer:
    """Use it as an asynchronous context manager; then `connect`, or `listen`."""

    def __init__(self, runtime: Runtime, pods: Pods) -> None:
        self._runtime = runtime
        self._pods = pods
        app = web.Application()
        app.router.add_get(LOGS, self._logs)
        for path, handler in ((EXEC, self._exec), (ATTACH, self._attach), (PORT_FORWARD, self._port_forward)):
            app.router.add_get(path, handler)
            app.router.add_post(path, handler)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False)

    async def __aenter__(self) -> KubeletServer:
        await self._runner.setup()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def connect(self) -> NodeConnection:
        """A connection from within this process."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        server = self._runner.server
        if server is None:
            raise RuntimeError("the server has not been set up")
        await asyncio.get_running_loop().connect_accepted_socket(server, theirs)
        reader, writer = await asyncio.open_connection(sock=ours, limit=HEAD_BYTES)
        return NodeConnection(reader, writer, LOCAL)

    async def listen(self, directory: Path, address: str, authorities: Sequence[bytes]) -> Endpoint:
        """Listen at the address, on a free port. `authorities`: the control plane's CA certificates, as DER. Raises
        OSError."""
        fingerprint = _make(directory / PEM)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=b"".join(authorities))
        context.load_cert_chain(directory / PEM)
        site = web.TCPSite(self._runner, address, 0, ssl_context=context)
        await site.start()
        sockets: Any = self._runner.addresses
        return Endpoint(sockets[0][1], fingerprint)

    # -- requests ----------------------------------------------------------------------------------------------------

    def _pod(self, request: web.Request) -> dict[str, Any]:
        """Raises an HTTP error."""
        if not _is_control_plane(request):
            raise web.HTTPForbidden(text="only the control plane may ask this agent")
        key = request.match_info["namespace"], request.match_info["pod"]
        for pod in self._pods():
            if (pod["metadata"].get("namespace"), pod["metadata"]["name"]) == key:
                return pod
        raise web.HTTPNotFound(text=f'pod "{key[1]}" does not exist')

    async def _logs(self, request: web.Request) -> web.StreamResponse:
        metadata, container = self._pod(request)["metadata"], request.match_info["container"]
        try:
            options = log_options(dict(request.query))
            pieces = open_log(self._runtime, metadata["uid"], container, metadata["name"], options)
        except StatusError as error:
            return web.Response(status=error.code, text=error.message)
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            async for piece in pieces:
                await response.write(piece)
            await response.write_eof()
        except (ConnectionError, asyncio.CancelledError):
            _log.v(4).info("The reader of a log has disconnected", pod=metadata["name"])
            raise
        return response

    async def _exec(self, request: web.Request) -> web.StreamResponse:
        uid, container = self._pod(request)["metadata"]["uid"], request.match_info["container"]
        if not isinstance(self._runtime, RunsCommands):
            raise web.HTTPNotImplemented(text=NO_COMMANDS)
        command = request.query.getall("command", [])
        channels = await open_channels(request)
        await run_command(self._runtime, uid, container, command, _streams(request), channels)
        return channels.response

    async def _attach(self, request: web.Request) -> web.StreamResponse:
        """What the container writes from now on. It goes through the container's log, line by line."""
        metadata, container, wanted = self._pod(request)["metadata"], request.match_info["container"], _streams(request)
        if wanted.stdin:
            raise web.HTTPBadRequest(text=NO_STDIN)
        try:
            logs = {
                channel: open_log(self._runtime, metadata["uid"], container, metadata["name"], options)
                for channel, options in _followed(wanted).items()
            }
        except StatusError as error:
            raise web.HTTPBadRequest(text=error.message) from None
        channels = await open_channels(request)
        await send_logs(logs, channels)
        return channels.response

    async def _port_forward(self, request: web.Request) -> web.StreamResponse:
        pod = self._pod(request)
        meta = pod["metadata"]

        def real_port(number: int) -> int | None:
            declared = [port for one, _ in containers_of(pod) for port in one.get("ports", ())]
            if not any(port["containerPort"] == number for port in declared):
                return None
            moved = known_ports(self._runtime.home(meta["uid"]) / PORTS) or {}
            return next((own[str(number)] for own in moved.values() if str(number) in own), number)

        return await forward_ports(request, f"{meta['name']}_{meta['namespace']}", real_port)


def _streams(request: web.Request) -> Streams:
    wanted = (request.query.get(name, "") in ("1", "true") for name in ("input", "output", "error", "tty"))
    return Streams(*wanted)


def _followed(wanted: Streams) -> dict[int, LogOptions]:
    """The options for the log of each channel."""
    if wanted.terminal:
        return {STDOUT: LogOptions(follow=True, tail_lines=0)}
    streams = ((STDOUT, "Stdout", wanted.stdout), (STDERR, "Stderr", wanted.stderr))
    return {channel: LogOptions(follow=True, tail_lines=0, stream=name) for channel, name, given in streams if given}


@asynccontextmanager
async def serve_kubelet(
    runtime: Runtime, pods: Pods, directory: Path, address: str, authorities: Sequence[bytes]
) -> AsyncIterator[Endpoint]:
    """Serve over TLS while the context is open. Raises OSError."""
    async with KubeletServer(runtime, pods) as server:
        yield await server.listen(directory, address, authorities)


def _is_control_plane(request: web.Request) -> bool:
    transport = request.transport
    if transport is None:
        return False
    if transport.get_extra_info("socket").family == socket.AF_UNIX:
        return True  # this process itself: see `connect`
    shown = transport.get_extra_info("peercert")
    names = [value for part in (shown or {}).get("subject", ()) for name, value in part if name == "commonName"]
    return names == [CLIENT_NAME]


def _make(path: Path) -> str:
    """Write a new key and its certificate to the file; return the certificate's fingerprint."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "situate-agent")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCKS_DIFFER)
        .not_valid_after(now + LIFE)
        .sign(key, hashes.SHA256())
    )
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ) + made.public_bytes(serialization.Encoding.PEM)
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(text)
    return hashlib.sha256(made.public_bytes(serialization.Encoding.DER)).hexdigest()
