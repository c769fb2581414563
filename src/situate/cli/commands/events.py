"""`situate events`: what happened to placements, one line each, from a revision on; for people, or for programs.

Each line has the revision that it is of. Whoever stops, or is stopped, goes on with `--since` the revision of the last
whole line: nothing is missed, and nothing told twice. A line is written whole and at once; one that was cut off by a
kill has no end, and is to be dropped.

    0  the end of what was asked for      3  what was asked for is not kept any more, or was never there
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from situate.cli import BadInput
from situate.cli.cluster.connection import access_to
from situate.cli.options import cluster_options
from situate.kube.errors import ApiError

if TYPE_CHECKING:
    from situate.kube.client import Client

GROUP: Final = "/apis/situate.dev/v1alpha1"
PLURAL: Final = "placementevents"
NOT_KEPT: Final = 3
OLDEST, NOW = "oldest", "now"
IDLE_S: Final = 90.0
"""How long nothing may be heard. The server says every 20 s how far it is."""
AGAIN_S: Final = (0.2, 0.5, 1.0, 2.0)
"""How long to wait before the first attempts to reach a server that has gone; then as long as the last."""
WIDTHS: Final = (10, 20, 10, 40)
TOO_LARGE: Final = 504


@click.command()
@click.option("-f", "--follow", is_flag=True, help="Go on with what happens, until stopped.")
@click.option(
    "--since",
    metavar="REVISION",
    default="",
    help="Begin after this revision; or `oldest`, or `now`. Default: the oldest that is kept; with --follow, now.",
)
@click.option("-n", "--namespace", default="", help="Only of this namespace.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", help="For people or programs.")
@click.option(
    "--gaps", is_flag=True, help="Where history is not kept any more, say so in a line, and go on after the gap."
)
@cluster_options
def events(
    follow: bool,
    since: str,
    namespace: str,
    output: str,
    gaps: bool,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Tell what happened to placements: who was bound where, evicted, repaired. One line each.

    Exit code 3 if what is asked for is not kept any more.
    """
    from situate.kube.client import Client

    if since not in ("", OLDEST, NOW) and not (since.isascii() and since.isdecimal()):
        raise BadInput(f"--since: {since!r} is no revision; nor is it `oldest` or `now`")
    access = access_to(kubeconfig, context)
    asked = Asked(follow, since or (NOW if follow else OLDEST), namespace, gaps)
    write = _json_line if output == "json" else _Table()

    async def run() -> int:
        async with Client(access, qps=-1, user_agent="situate-cli") as client:
            return await Telling(client, asked, write).run()

    code = asyncio.run(run())
    if code:
        sys.exit(code)


@dataclass(frozen=True, slots=True)
class Asked:
    follow: bool
    since: str
    namespace: str
    gaps: bool


class EndedError(Exception):
    """Nothing more can be told; why, in one line."""


class Telling:
    """Follows the server's log, across broken connections and restarts."""

    def __init__(self, client: Client, asked: Asked, write: Callable[[dict[str, Any]], str]) -> None:
        self._client = client
        self._asked = asked
        self._write = write
        self._at = "" if asked.since == NOW else "0" if asked.since == OLDEST else asked.since
        """All up to here was told; "" is now, and "0" the oldest there is."""
        where = f"/namespaces/{asked.namespace}" if asked.namespace else ""
        self._path = f"{GROUP}{where}/{PLURAL}"
        self._done = False

    async def run(self) -> int:
        """The exit code."""
        failures = 0
        while not self._done:
            try:
                await self._once()
                failures = 0
            except EndedError as error:
                return _ended(error)
            except ApiError as error:
                failures += 1
                if problem := self._final(error):
                    return _ended(problem)
                self._say(error, failures)
                await asyncio.sleep(AGAIN_S[min(failures, len(AGAIN_S)) - 1])
        return 0

    def _final(self, error: ApiError) -> EndedError | None:
        if error.status == TOO_LARGE and "Too large resource version" in error.message:
            return EndedError(f"{error.message}: this is not the history that --since {self._at} is of")
        return None

    def _say(self, error: ApiError, failures: int) -> None:
        """Whether it is worth another try. Raises ClickException."""
        if not self._asked.follow or not error.temporary:
            raise click.ClickException(error.message)
        if failures == 1:
            click.echo(f"the server does not answer, and is asked again: {error.message}", err=True)

    async def _once(self) -> None:
        """One connection, to its end."""
        params = {"watch": "true", "allowWatchBookmarks": "true"}
        if self._at:
            params["resourceVersion"] = self._at
        async with self._client.stream(self._path, params=params, idle_s=IDLE_S) as lines:
            while not self._done and (batch := await lines.batch()):
                told = "".join([self._heard(msgspec.json.decode(line)) for line in batch])
                if told:
                    sys.stdout.write(told)
                    sys.stdout.flush()

    def _heard(self, event: dict[str, Any]) -> str:
        found = event["object"]
        if event["type"] == "ERROR":
            return self._failed(found)
        meta = found["metadata"]
        self._at = meta["resourceVersion"]
        if event["type"] == "BOOKMARK":
            caught_up = (meta.get("annotations") or {}).get("k8s.io/initial-events-end") == "true"
            self._done = caught_up and not self._asked.follow
            return ""
        return self._write(_plain(found))

    def _failed(self, status: dict[str, Any]) -> str:
        if status.get("code") != 410:
            raise ApiError(int(status.get("code") or 0), str(status.get("reason")), str(status.get("message")))
        if not self._asked.gaps:
            raise EndedError(
                f"what happened after revision {self._at} is not kept any more ({status.get('message')}); "
                "--since oldest begins with what there is, and --gaps goes on after a line that says so"
            )
        gap = {"event": "gap", "since": self._at}
        self._at = "0"
        return self._write(gap)


def _ended(error: EndedError) -> int:
    click.echo(f"error: {error}", err=True)
    return NOT_KEPT


def _plain(found: dict[str, Any]) -> dict[str, Any]:
    """An event as one flat record."""
    meta, pod = found["metadata"], found.get("pod") or {}
    return {
        "revision": int(meta["resourceVersion"]),
        "time": found.get("time", ""),
        "event": found.get("event", ""),
        "namespace": meta.get("namespace", ""),
        "pod": pod.get("name", ""),
        "uid": pod.get("uid", ""),
        "node": found.get("node", ""),
        "bindingVersion": found.get("bindingVersion", 0),
        "phase": found.get("phase", ""),
        "was": found.get("was"),
        "scheduler": found.get("scheduler", ""),
        "reason": found.get("reason", ""),
        "message": found.get("message", ""),
    }


def _json_line(record: dict[str, Any]) -> str:
    return json.dumps(record, separators=(",", ":")) + "\n"


class _Table:
    """Lines for people, with headings above the first."""

    def __init__(self) -> None:
        self._begun = False

    def __call__(self, record: dict[str, Any]) -> str:
        headings = "" if self._begun else _row("REVISION", "TIME", "EVENT", "POD", "WHERE AND WHY")
        self._begun = True
        if record["event"] == "gap":
            return headings + _row("", "", "gap", "", f"what happened after revision {record['since']} is not kept")
        node, version = record["node"], record["bindingVersion"]
        again = f" (binding {version})" if version > 1 else ""
        why = ": ".join(part for part in (record["reason"], record["message"]) if part)
        where = "  ".join(part for part in (f"{node}{again}" if node else "", why) if part)
        pod = f"{record['namespace']}/{record['pod']}"
        return headings + _row(str(record["revision"]), record["time"], record["event"], pod, where)


def _row(*cells: str) -> str:
    *narrow, last = cells
    padded = [cell.ljust(width) for cell, width in zip(narrow, WIDTHS, strict=True)]
    return "  ".join([*padded, last.replace("\n", " ")]).rstrip() + "\n"
