"""Credentials of an exec plugin: `exec` in a kubeconfig, client.authentication.k8s.io/v1 and v1beta1.

The plugin runs when credentials are first needed, when they have expired and after a 401; one run at a time. Its time
and its output are limited. No message contains its output.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

import msgspec

from situate.kube.credentials import bearer
from situate.kube.errors import NO_CREDENTIALS, ApiError
from situate.kube.tls import BadPemError, Pair, show
from situate.wire.errors import from_decoder

API_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
INFO: Final = "KUBERNETES_EXEC_INFO"
RUN_S: Final = 60.0
INTERACTIVE_S: Final = 600.0
"""The time limit when it asks a person."""
OUTPUT_BYTES: Final = 1 << 20
"""The limit for each of its two outputs."""
STDERR_CHARS: Final = 300
"""How much of its stderr goes into a message."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """The plugin, as configured and checked."""

    command: str
    api_version: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    install_hint: str = ""
    interactive: Literal["Never", "IfAvailable", "Always"] = "IfAvailable"
    cluster: Mapping[str, Any] | None = None
    """What the plugin gets to know about the cluster."""
    where: str = ""


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class _Credential(msgspec.Struct, frozen=True, rename="camel"):
    kind: str = ""
    api_version: str = ""
    status: _Status | None = None


class ExecCredentials:
    """What the plugin printed, until that expires. `now` is the wall clock, in seconds."""

    def __init__(
        self,
        plugin: Plugin,
        tls: ssl.SSLContext | None,
        *,
        now: Callable[[], float] = time.time,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._plugin = plugin
        self._tls = tls
        self._now = now
        self._environ = os.environ if environ is None else environ
        self._running = asyncio.Lock()
        self._header: str | None = None
        self._pair: Pair | None = None
        self._expires: float | None = None
        self.version = 0
        self.certificate = 0

    async def header(self) -> str | None:
        if self._stale():
            async with self._running:
                if self._stale():
                    await self._refresh()
        return self._header

    async def renew(self, version: int) -> bool:
        async with self._running:
            if self.version == version:
                await self._refresh()
        return True

    def _stale(self) -> bool:
        return self.version == 0 or (self._expires is not None and self._now() > self._expires)

    async def _refresh(self) -> None:
        told = self._read(await self._run())
        try:
            header = bearer(told.token) if told.token else None
        except ValueError:
            raise self._problem("printed a token that is none") from None
        pair = None
        if told.client_certificate_data:
            pair = Pair(told.client_certificate_data.encode(), told.client_key_data.encode())
            self._show(pair)
        if self._pair is not None and pair != self._pair:
            self.certificate += 1
        self._header, self._pair = header, pair
        expires = told.expiration_timestamp
        self._expires = None if expires is None else expires.timestamp()
        self.version += 1

    def _show(self, pair: Pair) -> None:
        if self._tls is None or pair == self._pair:
            return
        try:
            show(self._tls, pair)
        except BadPemError as error:
            raise self._problem(f"printed a client certificate that cannot be used: {error}") from None

    # -- its output ----------------------------------------------------------------------------------------------------

    def _read(self, printed: bytes) -> _Status:
        wanted = self._plugin.api_version
        try:
            told = msgspec.json.decode(printed, type=_Credential)
        except msgspec.ValidationError as error:
            path, what = from_decoder(str(error), None)
            raise self._problem(f"printed no ExecCredential: {path}: {what}") from None
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise self._problem("printed no ExecCredential, but something that is not JSON") from None
        if told.kind != "ExecCredential" or told.api_version != wanted:
            is_now = f"{told.kind} of {told.api_version}"
            raise self._problem(f"printed {is_now}, but the kubeconfig wants ExecCredential of {wanted}")
        status = told.status
        if status is None or not (status.token or status.client_certificate_data or status.client_key_data):
            raise self._problem("printed neither a token nor a client certificate")
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise self._problem("printed only one of client certificate and key")
        return status

    # -- running it ----------------------------------------------------------------------------------------------------

    async def _run(self) -> bytes:
        interactive = self._interactive()
        seconds = INTERACTIVE_S if interactive else RUN_S
        try:
            program = await asyncio.create_subprocess_exec(
                self._plugin.command,
                *self._plugin.args,
                stdin=None if interactive else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=None if interactive else asyncio.subprocess.PIPE,  # a person is to read what it asks
                env=self._env(interactive),
            )
        except (OSError, ValueError) as error:
            raise self._not_run(error) from None
        try:
            async with asyncio.timeout(seconds):
                printed, complaints = await asyncio.gather(_limited(program.stdout), _limited(program.stderr))
                code = await program.wait()
        except TimeoutError:
            raise self._problem(f"did not end within {seconds:g} s") from None
        except _TooMuchError:
            raise self._problem(f"printed more than {OUTPUT_BYTES} bytes") from None
        finally:
            # Kill it if it runs, and close our ends: we would wait for ever for a pipe that a child of it holds open.
            program._transport.close()  # type: ignore[attr-defined]
            await program.wait()
        if code:
            last = complaints.decode("utf-8", "replace").strip().rpartition("\n")[2][:STDERR_CHARS]
            raise self._problem(f"failed with exit code {code}{': ' if last else ''}{last}")
        return printed

    def _interactive(self) -> bool:
        mode = self._plugin.interactive
        if mode == "Never":
            return False
        terminal = sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
        if mode == "Always" and not terminal:
            raise self._problem("has interactiveMode Always, and standard input is not a terminal")
        return terminal

    def _env(self, interactive: bool) -> dict[str, str]:
        spec: dict[str, Any] = {"interactive": interactive}
        if self._plugin.cluster is not None:
            spec["cluster"] = self._plugin.cluster
        info = {"kind": "ExecCredential", "apiVersion": self._plugin.api_version, "spec": spec}
        return {**self._environ, **dict(self._plugin.env), INFO: msgspec.json.encode(info).decode()}

    def _not_run(self, error: OSError | ValueError) -> ApiError:
        if isinstance(error, FileNotFoundError):
            hint = (
                f": {self._plugin.install_hint}" if self._plugin.install_hint else ": install it, or set its full path"
            )
            return self._problem(f"executable not found{hint}")
        why = (error.strerror or type(error).__name__) if isinstance(error, OSError) else "holds a zero byte"
        return self._problem(f"cannot be run: {why}")

    def _problem(self, what: str) -> ApiError:
        text = f"{self._plugin.where}: exec: credential plugin {self._plugin.command}: {what}"
        return ApiError(0, NO_CREDENTIALS, text, sent=False)


class _TooMuchError(Exception):
    pass


async def _limited(pipe: asyncio.StreamReader | None) -> bytes:
    if pipe is None:
        return b""
    read = bytearray()
    while piece := await pipe.read(64 << 10):
        read += piece
        if len(read) > OUTPUT_BYTES:
            raise _TooMuchError
    return bytes(read)
