"""Serves the agent's logs to the control plane over TLS, for an agent in a process of its own.

Both sides authenticate. The agent creates a key at startup and publishes the fingerprint of its certificate in the
annotation CERTIFICATE of its Node, which only the agent may write; the control plane accepts no other. The control
plane presents a client certificate of its CA with the name SERVER_NAME; the agent accepts no other. Only logs are
served.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from situate.agent.log_reader import open_log
from situate.agent.runtime import Runtime
from situate.loop.logs import Log
from situate.server.errors import StatusError
from situate.server.http.ports import LogOptions

CERTIFICATE: Final = "situate.dev/agent-certificate"
"""Annotation of a Node: the SHA-256 of its agent's certificate."""
SERVER_NAME: Final = "system:situate:server"
"""The common name of the control plane's client certificate."""
PEM: Final = "serving.pem"
LIFE: Final = timedelta(days=3_650)
CLOCKS_DIFFER: Final = timedelta(days=1)
LOGS: Final = "/containerLogs/{uid}/{container}"

_log = Log(__name__)
_decode_options: Final = msgspec.json.Decoder(LogOptions).decode


class Endpoint(NamedTuple):
    """The port of the log server and the fingerprint of its certificate."""

    port: int
    fingerprint: str


def log_path(uid: str, container: str) -> str:
    return LOGS.format(uid=uid, container=container)


@asynccontextmanager
async def serve_logs(
    runtime: Runtime, directory: Path, address: str, authorities: Sequence[bytes]
) -> AsyncIterator[Endpoint]:
    """Serve logs at the address, on a free port, while the context is open. Raises OSError.

    `authorities`: the control plane's CA certificates, as DER.
    """
    fingerprint = _make(directory / PEM)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=b"".join(authorities))
    context.load_cert_chain(directory / PEM)
    app = web.Application()
    app.router.add_get(LOGS, _Answering(runtime).answer)
    runner = web.AppRunner(app, access_log=None, handle_signals=False)
    await runner.setup()
    try:
        site = web.TCPSite(runner, address, 0, ssl_context=context)
        await site.start()
        sockets: Any = runner.addresses
        yield Endpoint(sockets[0][1], fingerprint)
    finally:
        await runner.cleanup()


class _Answering:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if not _is_server(request):
            return web.Response(status=403, text="only the control plane may read logs")
        uid, container = request.match_info["uid"], request.match_info["container"]
        try:
            options = _decode_options(request.query.get("options", "{}").encode())
            pieces = open_log(self._runtime, uid, container, request.query.get("pod", uid), options)
        except msgspec.DecodeError as error:
            return web.Response(status=400, text=str(error))
        except StatusError as error:
            return web.Response(status=error.code, text=error.message)
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            async for piece in pieces:
                await response.write(piece)
            await response.write_eof()
        except (ConnectionError, asyncio.CancelledError):
            _log.v(4).info("The reader of a log has disconnected", uid=uid)
            raise
        return response


def _is_server(request: web.Request) -> bool:
    shown = None if request.transport is None else request.transport.get_extra_info("peercert")
    names = [value for part in (shown or {}).get("subject", ()) for name, value in part if name == "commonName"]
    return names == [SERVER_NAME]


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
