"""Serves the page: in the foreground, or as the process that `situate up` starts when a browser connects."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import ssl
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from situate.cli.cluster.connection import loop_factory, until_stopped
from situate.cli.control_plane.page import PAGE_FOLDER, SOCKET
from situate.cli.input.devices import also_devices
from situate.kube.access import Access
from situate.kube.kinds import ALL_KINDS
from situate.kube.serving_certificate import self_signed
from situate.kube.tls import pem_files
from situate.loop.logs import Log, Logging, set_up
from situate.loop.watched import WatchedFile
from situate.server.identity.file_names import AUTHORITY, SERVER
from situate.web.desk import Desk
from situate.web.grants import GrantFolder
from situate.web.server import PageServer, PageSettings
from situate.wire.errors import InputError

IDLE_S: Final = 15 * 60.0
"""How long a process that `situate up` started stays when nobody is logged in. The next connection starts another."""
COLLECTIONS: Final = (10_000, 20, 20)
"""When to look for garbage: seldom, since few objects of a cluster become any, and a look at all of them takes long."""
CHECK_S: Final = 5.0
CERTIFICATE_S: Final = 60.0
"""How often to look for a renewed certificate."""
ANY_ADDRESS: Final = ("0.0.0.0", "::", "")

_log = Log(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOptions:
    """What the flags amount to."""

    access: Access
    address: str
    port: int
    names: tuple[str, ...]
    certificate: Path | None
    key: Path | None
    user: str
    groups: tuple[str, ...]
    links: bool
    """Whether to print login links."""
    namespace: str
    directory: Path | None


def serve_page(options: PageOptions) -> None:
    """Until stopped. Raises InputError."""
    set_up(Logging())
    gc.set_threshold(*COLLECTIONS)
    handed = os.environ.pop(SOCKET, "")
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        if handed:
            runner.run(until_stopped(lambda: _activated(options, socket.socket(fileno=int(handed)))))
        else:
            runner.run(until_stopped(lambda: _foreground(options)))


# ── in the foreground ───────────────────────────────────────────────────────────────────────────────────────────────


async def _foreground(options: PageOptions) -> None:
    """Print a link, and a new one whenever the last was used."""
    listening = _listen(options.address, options.port)
    with tempfile.TemporaryDirectory(prefix="situate-web-") as folder:
        grants = GrantFolder(Path(folder))
        host = "localhost" if options.address in ANY_ADDRESS else options.address
        url = f"https://{options.names[0] if options.names else host}:{listening.getsockname()[1]}"

        def say_link() -> None:
            token = grants.create(options.user, options.groups, options.namespace)
            click.echo(f"{url}/login#{token}")

        tls, _ = _context(options)
        async with PageServer(_settings(options, grants, tls, say_link), listening):
            page_of = f"The page of {options.access.server}"
            if options.links:
                click.echo(f"{page_of}. This link works once, for 15 minutes:\n")
                say_link()
            else:
                click.echo(f"{page_of}: {url}. Log in with a token of its API server.")
            await asyncio.Event().wait()


def _listen(address: str, port: int) -> socket.socket:
    try:
        return socket.create_server((address, port), family=socket.AF_INET6 if ":" in address else socket.AF_INET)
    except OSError as error:
        raise InputError(
            f"{address}:{port} cannot listen there: {error.strerror}; choose another port with --port"
        ) from None


# ── behind `situate up` ─────────────────────────────────────────────────────────────────────────────────────────────


async def _activated(options: PageOptions, listening: socket.socket) -> None:
    """Until the control plane ends, or nobody was logged in for a while."""
    if options.directory is None:
        raise InputError(f"{SOCKET} needs --cluster")
    tls, file = _context(options)
    settings = _settings(options, GrantFolder(options.directory / PAGE_FOLDER), tls, lambda: None)
    async with PageServer(settings, listening) as server:
        parent, idle = asyncio.ensure_future(_until_orphaned()), asyncio.ensure_future(_until_idle(server))
        tasks = [parent, idle, asyncio.ensure_future(_renewed(tls, file))]
        try:
            await asyncio.wait([parent, idle], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _until_orphaned() -> None:
    """Until our stdin ends, which the control plane holds. A thread that reads it could not be stopped."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await reader.read()


async def _until_idle(server: PageServer) -> None:
    idle_s = 0.0
    while idle_s < IDLE_S:
        await asyncio.sleep(CHECK_S)
        idle_s = idle_s + CHECK_S if server.idle else 0.0


async def _renewed(tls: ssl.SSLContext, file: Path | None) -> None:
    watched = WatchedFile(file) if file is not None else None
    while True:
        await asyncio.sleep(CERTIFICATE_S)
        if watched is not None and watched.changed():
            try:
                tls.load_cert_chain(watched.path)
            except (ssl.SSLError, OSError) as error:
                _log.error("The new certificate cannot be used, the old one stays", err=str(error))


# ── both ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _settings(
    options: PageOptions, grants: GrantFolder, tls: ssl.SSLContext, on_login: Callable[[], None]
) -> PageSettings:
    return PageSettings(
        own=options.access,
        load_desk=load_desk,
        kinds=also_devices(ALL_KINDS),
        grants=grants,
        tls=tls,
        cluster=options.access.where or options.access.server,
        names=(*options.names, *(() if options.address in ANY_ADDRESS else (options.address,))),
        on_login=on_login,
    )


def _context(options: PageOptions) -> tuple[ssl.SSLContext, Path | None]:
    """The certificate of the flags, the cluster's own, or one that we make; and its file, if that may be renewed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if (options.certificate is None) != (options.key is None):
        raise InputError("--tls-cert-file and --tls-private-key-file must be given together")
    try:
        if options.certificate is not None:
            context.load_cert_chain(options.certificate, options.key)
            return context, None
        if options.directory is not None:
            file = options.directory / AUTHORITY / SERVER
            context.load_cert_chain(file)
            return context, file
        with pem_files(*self_signed("situate-web")) as (certificate, key):
            context.load_cert_chain(certificate, key)
    except ssl.SSLError as error:
        raise InputError(f"the certificate cannot be used: {error}") from None
    return context, None


def load_desk() -> Desk:
    """It imports the commands that answer, which takes longer than the first map."""
    from situate.cli.commands.web.desk import CommandDesk

    return CommandDesk()
