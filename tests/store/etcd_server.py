"""A real etcd for the tests: one member, or three; where it is, and how it is started.

In tests without fsync, as it is our client that is tested, and with quick elections, so that leases of a second are
possible.
"""

import os
import ssl
import urllib.error
import urllib.request
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from kubernetes.parts import Part, folder, free_ports

QUICK = ("--unsafe-no-fsync", "--heartbeat-interval=20", "--election-timeout=200", "--log-level=error")


def missing() -> str | None:
    """One line saying that there is no etcd and how to get one, or None."""
    if os.access(folder() / "etcd", os.X_OK):
        return None
    return "the store on etcd needs etcd: `make kubernetes` builds it, or KUBE_ASSETS=dir says where it is"


def healthy(url: str, tls: ssl.SSLContext | None) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=1, context=tls) as answer:
            return b'"health":"true"' in answer.read()
    except (urllib.error.URLError, OSError):
        return False


class Etcd:
    """Members that make one cluster."""

    def __init__(
        self,
        where: Path,
        members: int = 1,
        flags: Sequence[str] = (),
        tls: ssl.SSLContext | None = None,
        *,
        quick: bool = True,
    ) -> None:
        self._tls = tls
        ports = free_ports(2 * members)
        self.endpoints = [f"127.0.0.1:{port}" for port in ports[:members]]
        self._urls = [f"{'https' if tls else 'http'}://{endpoint}" for endpoint in self.endpoints]
        peers = [f"http://127.0.0.1:{port}" for port in ports[members:]]
        cluster = ",".join(f"m{number}={peer}" for number, peer in enumerate(peers))
        self.members = [
            Part(
                f"etcd m{number}",
                [
                    folder() / "etcd",
                    f"--name=m{number}",
                    f"--data-dir={where / f'm{number}'}",
                    f"--listen-client-urls={self._urls[number]}",
                    f"--advertise-client-urls={self._urls[number]}",
                    f"--listen-peer-urls={peer}",
                    f"--initial-advertise-peer-urls={peer}",
                    f"--initial-cluster={cluster}",
                    *(QUICK if quick else ()),
                    *flags,
                ],
                where / f"m{number}.log",
            )
            for number, peer in enumerate(peers)
        ]

    def __enter__(self) -> "Etcd":
        for member in self.members:
            member.start()
        for member, url in zip(self.members, self._urls, strict=True):
            member.wait_ready(partial(healthy, url, self._tls))
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members:
            member.kill()
