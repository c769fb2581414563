"""`situate envtest etcd`: what envtest needs of an etcd that nobody uses."""

from __future__ import annotations

import signal
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import FrameType
from typing import Final, NoReturn
from urllib.parse import urlsplit

import click

from situate import __version__

DEFAULT_URL: Final = "http://127.0.0.1:2379"
NAME: Final = "situate"
"""What `/version` says, so that `situate envtest kube-apiserver` knows that nothing is stored here."""
ANSWERS: Final = {
    "/health": '{"health":"true"}',
    "/version": f'{{"etcdserver":"{NAME}","etcdcluster":"{__version__}"}}',
}


@click.command(context_settings={"ignore_unknown_options": True})
@click.option("--listen-client-urls", "url", default=DEFAULT_URL, show_default=True, help="Where to listen.")
@click.argument("flags", nargs=-1, type=click.UNPROCESSED)
def etcd(url: str, flags: tuple[str, ...]) -> None:
    """Answer health checks as etcd does, until stopped, and store nothing: the API server beside it has its own store.

    FLAGS: etcd's other flags are accepted and have no effect.
    """
    where = urlsplit(url.partition(",")[0])
    if where.scheme != "http" or not where.hostname:
        raise click.UsageError(f"--listen-client-urls is {url}; it must be http://host:port")
    server = ThreadingHTTPServer((where.hostname, where.port or 0), _Handler)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)
    server.serve_forever()


def _stop(_number: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(0)


class _Handler(BaseHTTPRequestHandler):
    timeout = 10.0

    def do_GET(self) -> None:
        answer = ANSWERS.get(self.path)
        if answer is None:
            self.send_error(HTTPStatus.NOT_FOUND, "this etcd answers health checks only")
            return
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as in the base class
        """Nothing: envtest asks every 100 ms."""
