"""The daily renewal of the server's certificate on a disk that is full."""

import asyncio
import errno
import os
import ssl
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from situate.cli.control_plane import parts
from situate.cli.control_plane.settings import ControlPlaneSettings
from situate.server.identity.pki.authority import Authority, open_authority
from situate.server.kubelet.connector import KubeletTls


def test_a_renewal_that_finds_no_room_is_tried_again_and_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[int] = []
    renewed = asyncio.Event()

    def full(*_: object) -> Path:
        asked.append(1)
        if len(asked) < 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return tmp_path / "server.pem"

    class Tls:
        def load_verify_locations(self, *, cadata: str) -> None:
            pass

        def load_cert_chain(self, _path: Path) -> None:
            renewed.set()

    async def nothing() -> None:
        pass

    monkeypatch.setattr(Authority, "server_certificate", full)
    authority = open_authority(tmp_path / "pki", parts.now())

    async def story() -> None:
        settings = ControlPlaneSettings(directory=tmp_path)
        identity, tls = cast(Any, SimpleNamespace(authority=authority)), cast(ssl.SSLContext, Tls())
        renewing = asyncio.create_task(parts.renew_certificates(settings, identity, tls, KubeletTls(), nothing))
        async with asyncio.timeout(10):
            await renewed.wait()
        assert not renewing.done()
        renewing.cancel()

    monkeypatch.setattr(parts, "RETRY_CERTIFICATE_S", 0.01)
    monkeypatch.setattr(parts, "NOTICE_CERTIFICATES_S", 0.01)
    monkeypatch.setattr(parts, "_load_certificate", lambda *_: None)
    asyncio.run(story())
    assert [record.getMessage() for record in caplog.records] == [
        "The server's certificate could not be renewed; the old one stays"
    ] * 2
