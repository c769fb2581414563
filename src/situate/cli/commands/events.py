"""`situate events`: what happened to placements, one line each, from a revision on; for people, or for programs.

Each line has its revision. To continue after a stop, give `--since` the revision of the last whole line: nothing is
missed, and nothing repeated. Each line is written at once; drop a last line that a kill left without its end.

    0  the end of what was asked for      3  the server no longer has, or never had, what was asked for
"""

import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import click
import msgspec

from situate.cli import BadInput
from situate.cli.cluster.connection import Client, with_client
from situate.cli.options import cluster_options, output_option
from situate.cli.output.formats import NAME, dump, for_people
from situate.kube.errors import ApiError

GROUP: Final = "/apis/situate.dev/v1alpha1"
PLURAL: Final = "placementevents"
NOT_KEPT: Final = 3
OLDEST, NOW = "oldest", "now"
IDLE_S: Final = 90.0
"""How long the connection may be silent. The server reports its progress every 20 s."""
RETRY_S: Final = (0.2, 0.5, 1.0, 2.0)
"""Waits before the first attempts to reach a server that is gone; after those, the last one."""
WIDTHS: Final = (10, 20, 10, 40)
GONE: Final = 410
TOO_LARGE: Final = 504


@click.command()
@click.option("-f", "--follow", is_flag=True, help="Continue with what happens, until stopped.")
@click.option(
    "--since",
    metavar="REVISION",
    default="",
    help="Begin after this revision; or `oldest`, or `now`. Default: the oldest that is kept; with --follow, now.",
)
@click.option("-n", "--namespace", default="", help="Only events of this namespace.")
@output_option()
@click.option("--gaps", is_flag=True, help="Where history is no longer kept, print a line, and continue after the gap.")
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
    """Show what happened to placements: binds, evictions and repairs, one line each.

    Exits with 3 if the server no longer keeps what is asked for.
    """
    if since not in ("", OLDEST, NOW) and not (since.isascii() and since.isdecimal()):
        raise BadInput(f"--since: {since!r} is not a revision, nor `oldest` or `now`")
    options = EventOptions(follow, since or (NOW if follow else OLDEST), namespace, gaps)
    write = _Table() if for_people(output) else _writer(output)
    try:
        with_client(kubeconfig, context, lambda client: PlacementEventStream(client, options, write).run())
    except NotKeptError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(NOT_KEPT)


@dataclass(frozen=True, slots=True)
class EventOptions:
    follow: bool
    since: str
    namespace: str
    gaps: bool


class NotKeptError(Exception):
    """The server does not have the history that was asked for; why, in one line."""


class PlacementEventStream:
    """Follows the server's placement events, across broken connections and restarts."""

    def __init__(self, client: Client, options: EventOptions, write: Callable[[dict[str, Any]], str]) -> None:
        self._client = client
        self._options = options
        self._write = write
        self._at = {NOW: "", OLDEST: "0"}.get(options.since, options.since)
        """The revision of the last line; "" is now, and "0" the oldest there is."""
        where = f"/namespaces/{options.namespace}" if options.namespace else ""
        self._path = f"{GROUP}{where}/{PLURAL}"
        self._done = False

    async def run(self) -> None:
        """Raises NotKeptError, ApiError."""
        failures = 0
        while not self._done:
            try:
                await self._watch()
                failures = 0
            except ApiError as error:
                failures += 1
                if error.status == TOO_LARGE and "Too large resource version" in error.message:
                    raise NotKeptError(f"{error.message}: --since {self._at} is of another history") from None
                if not self._options.follow or not error.temporary:
                    raise
                if failures == 1:
                    click.echo(f"the server does not answer; trying again: {error.message}", err=True)
                await asyncio.sleep(RETRY_S[min(failures, len(RETRY_S)) - 1])

    async def _watch(self) -> None:
        """One connection, until it ends."""
        params = {"watch": "true", "allowWatchBookmarks": "true"}
        if self._at:
            params["resourceVersion"] = self._at
        async with self._client.stream(self._path, params=params, idle_s=IDLE_S) as lines:
            while not self._done and (batch := await lines.batch()):
                text = "".join([self._text(msgspec.json.decode(line)) for line in batch])
                if text:
                    sys.stdout.write(text)
                    sys.stdout.flush()

    def _text(self, event: dict[str, Any]) -> str:
        found = event["object"]
        if event["type"] == "ERROR":
            return self._gap(found)
        meta = found["metadata"]
        self._at = meta["resourceVersion"]
        if event["type"] == "BOOKMARK":
            caught_up = (meta.get("annotations") or {}).get("k8s.io/initial-events-end") == "true"
            self._done = caught_up and not self._options.follow
            return ""
        return self._write(_plain(found))

    def _gap(self, status: dict[str, Any]) -> str:
        """The line for history that the server no longer has. Raises NotKeptError, ApiError."""
        if status.get("code") != GONE:
            raise ApiError(int(status.get("code") or 0), str(status.get("reason")), str(status.get("message")))
        if not self._options.gaps:
            raise NotKeptError(
                f"what happened after revision {self._at} is no longer kept ({status.get('message')}); "
                "--since oldest begins with what there is, and --gaps continues after a line that says so"
            )
        gap = {"event": "gap", "since": self._at}
        self._at = "0"
        return self._write(gap)


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


def _writer(output: str) -> Callable[[dict[str, Any]], str]:
    """For programs: one line for each event, or one document of YAML."""
    if output == "json":
        return lambda record: json.dumps(record, separators=(",", ":")) + "\n"
    if output == "yaml":
        return lambda record: f"---\n{dump(record, output)}"
    if output == NAME:
        return lambda record: f"pod/{record['pod']}\n" if "pod" in record else ""
    return lambda record: f"{dump(record, output)}\n"


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
