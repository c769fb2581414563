"""`situate server` as a process of its own, which the tests may kill; and how to speak to it over TLS."""

import base64
import contextlib
import json
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

READY_S = 30.0
STOP_S = 15.0
POLL_S = 0.005


class NotStartedError(Exception):
    """With what the server said."""


class Plane:
    """A directory, and the server that runs in it. `with` stops it at the end, and looks at its log."""

    def __init__(self, directory: Path, *flags: str, log: Path | None = None) -> None:
        self.directory = directory
        self.log = (log or directory.parent) / f"{directory.name}.log"
        self._flags = flags
        self._process: subprocess.Popen[bytes] | None = None
        self.ready_after_s = 0.0
        """From the start of the process till it said that it was ready."""

    def __enter__(self) -> "Plane":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def command(self) -> list[str]:
        flags = ["--dir", str(self.directory), "--port", "0", *self._flags]
        return [sys.executable, "-m", "situate", "server", *flags]

    @property
    def pid(self) -> int:
        return self._process.pid if self._process is not None else 0

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Returns once the server has said where it is. Raises NotStartedError."""
        began = time.monotonic()
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        while not self._says_ready():
            if self._process.poll() is not None or time.monotonic() - began > READY_S:
                self.kill()
                raise NotStartedError(self.said()[-2000:])
            time.sleep(POLL_S)
        self.ready_after_s = time.monotonic() - began

    def _says_ready(self) -> bool:
        with contextlib.suppress(FileNotFoundError, ValueError):
            return bool(self.state()["pid"] == self.pid)
        return False

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> int:
        """The exit code after SIGTERM."""
        if self._process is None:
            return 0
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(STOP_S)

    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.directory / "server.json").read_text())
        return found

    @property
    def url(self) -> str:
        return str(self.state()["url"])

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def peak_bytes(self) -> int:
        """The most memory that the process ever had."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        (found,) = (line.split()[1] for line in lines if line.startswith("VmHWM"))
        return int(found) << 10

    def admin(self) -> ssl.SSLContext:
        """A client with the certificate of the kubeconfig."""
        config = yaml.safe_load((self.directory / "kubeconfig").read_text())
        user = config["users"][0]["user"]
        with tempfile.NamedTemporaryFile() as file:
            file.write(base64.b64decode(user["client-certificate-data"]))
            file.write(base64.b64decode(user["client-key-data"]))
            file.flush()
            context = self.anybody()
            context.load_cert_chain(file.name)
        return context

    def anybody(self) -> ssl.SSLContext:
        """A client that trusts the server, and shows nothing."""
        return ssl.create_default_context(cafile=str(self.directory / "pki" / "ca.crt"))
