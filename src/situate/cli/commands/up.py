"""`situate up`: a cluster in one command. Starts a control plane in the background, and prints how to use it."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import click

from situate.agent.host_security import trust_statement
from situate.cli.cluster.local import LocalCluster, context_name, is_named
from situate.cli.commands.server import DEFAULT_PORT, PORT, control_plane_options, settings_of
from situate.cli.control_plane.page import LOOPBACK, PAGE_FOLDER
from situate.cli.control_plane.state import COPIED_FROM, read_state
from situate.cli.options import container_security
from situate.cli.output.text import plural
from situate.core.versions import KubernetesRules
from situate.web.grants import GrantFolder

READY_S: Final = 90.0
"""How long a control plane may take to start, on a busy machine. One that has ended is noticed at once."""
COPIED_S: Final = 600.0
"""The same, for a copy of another cluster."""
DEFAULT_NODES: Final = 5
POLL_S: Final = 0.05
LOG: Final = "server.log"
LAST_LINES: Final = 5
FIRST_STEPS: Final = Path(__file__).parents[1] / "examples" / "first-steps.yaml"
RENAMED: Final = {
    "directory": "--dir",
    "names": "--tls-san",
    "verbosity": "--v",
    "rules": "--kubernetes-version",
    "source": "--from",
}
"""Flags that do not have the name of their value."""
SAID: Final = ("Node", "Pod", "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob")
"""The kinds of a copy that are counted for people."""
MAX_PORT: Final = 65_535


@click.command()
@control_plane_options(
    click.option(
        "--port",
        type=PORT,
        help=f"Default: the same as last time, else {DEFAULT_PORT}, else any free one; 0: any free one.",
    )
)
@click.option(
    "--nodes",
    type=click.IntRange(0, 100_000),
    help=f"How many hollow nodes; default: {DEFAULT_NODES}, or with --from only the copies.",
)
@click.option("--no-scheduler", is_flag=True, help="Start no scheduler: for a fleet, or one of your own.")
@click.option("--merge-kubeconfig", "merge", is_flag=True, help="Add a context for it to kubectl's kubeconfig.")
@click.option("--use-context", "switch", is_flag=True, help="With --merge-kubeconfig: make it the current context.")
@click.option("--no-web", is_flag=True, help="Do not serve the page.")
@click.option("--foreground", is_flag=True, help="Run in the foreground; Ctrl-C stops it.")
def up(foreground: bool, no_scheduler: bool, no_web: bool, merge: bool, switch: bool, **flags: Any) -> None:
    """Start a cluster here: API server, scheduler, controllers and hollow nodes. `situate down` stops it."""
    directory: Path = flags["directory"]
    found = read_state(directory)
    if found is not None:
        raise click.ClickException(
            f"a cluster is up already at {found['url']} (process {found['pid']}); `{_down(directory)}` stops it"
        )
    if switch and not merge:
        raise click.UsageError("--use-context needs --merge-kubeconfig")
    if foreground and merge:
        raise click.UsageError("--merge-kubeconfig is for a cluster in the background")
    if flags["port"] is None:
        flags["port"] = _free_port(directory, flags["address"])
    if flags["nodes"] is None:
        flags["nodes"] = 0 if flags["source"] or (directory / COPIED_FROM).exists() else DEFAULT_NODES
    flags["web_port"] = _web_port(flags["port"], flags["web_port"], no_web)
    if foreground:
        from situate.cli.control_plane.process import run

        sys.exit(run(settings_of(flags, scheduler=not no_scheduler, controllers=True)))
    begun = time.monotonic()
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    # The server checks the flags, and says what is wrong in one line: checking here would take as long again.
    state = _start(directory, flags, scheduler=not no_scheduler)
    _say(LocalCluster(directory, state), time.monotonic() - begun, machine=flags["process_node"])
    if merge:
        _merge(directory, switch=switch)
    if flags["process_node"]:
        security = container_security(flags["run_as_user"], flags["container_users"])
        click.echo(
            f'\nwarning: {trust_statement(security)}. See docs/guides/nodes.md, "Who must be trusted".', err=True
        )


def _free_port(directory: Path, address: str) -> int:
    """The port that this cluster had before, so that its kubeconfigs stay valid; else the default; else a free one."""
    from situate.kube.kubeconfig import find_access
    from situate.wire.errors import InputError

    before = None
    with contextlib.suppress(InputError, ValueError):
        before = urlsplit(find_access(str(LocalCluster(directory, None).kubeconfig)).server).port
    return next((port for port in (before, DEFAULT_PORT) if port is not None and _is_free(address, port)), 0)


def _is_free(address: str, port: int) -> bool:
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind((address, port))
        except OSError:
            return False
    return True


def _web_port(port: int, given: int | None, no_web: bool) -> int | None:
    """The page's own port: the one after the API's if that is free, unless another is given."""
    if no_web:
        return None
    if given is not None:
        return given
    return port + 1 if 0 < port < MAX_PORT and _is_free(LOOPBACK, port + 1) else 0


def _start(directory: Path, flags: dict[str, Any], *, scheduler: bool) -> dict[str, Any]:
    log = directory / LOG
    with log.open("ab") as output:
        os.fchmod(output.fileno(), 0o600)
        process = subprocess.Popen(
            [sys.executable, "-m", "situate", "server", *_arguments(flags, scheduler=scheduler)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    ready_s = COPIED_S if flags["source"] else READY_S
    deadline = time.monotonic() + ready_s
    try:
        while time.monotonic() < deadline:
            found = read_state(directory)
            if found is not None and found["pid"] == process.pid:
                return found
            if process.poll() is not None:
                raise click.ClickException(_failure(log))
            time.sleep(POLL_S)
    except KeyboardInterrupt:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        raise
    process.terminate()
    raise click.ClickException(f"the control plane is not ready after {ready_s:.0f} s; {log} says more")


def _failure(log: Path) -> str:
    """The server's last error, which is one line."""
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()][-LAST_LINES:]
    found = next((line for line in reversed(lines) if line.startswith("error: ")), lines[-1] if lines else "nothing")
    return f"the control plane did not start: {found.removeprefix('error: ')} ({log})"


def _arguments(flags: dict[str, Any], *, scheduler: bool) -> list[str]:
    """The same flags, for `situate server`."""
    arguments = [*(("--with", "scheduler") if scheduler else ()), "--with", "controllers"]
    for name, value in flags.items():
        flag = RENAMED.get(name, f"--{name.replace('_', '-')}")
        given = value.version if isinstance(value, KubernetesRules) else value
        for one in given if isinstance(given, tuple) else (given,):
            if one is True:
                arguments.append(flag)
            elif one is not False and one not in (None, ""):
                arguments += [flag, str(one)]
    return arguments


def _down(directory: Path) -> str:
    return f"situate down --name {directory.name}" if is_named(directory) else "situate down"


def _say(cluster: LocalCluster, seconds: float, *, machine: bool) -> None:
    state = cluster.state or {}
    nodes, copied = state.get("hollowNodes", 0), state.get("copied")
    named = plural(nodes, "hollow node")
    if machine:
        named = f"{named} and this machine" if nodes else "this machine as its node"
    what = f"Cluster {cluster.name}" if cluster.name else "A cluster"
    click.echo(f"{what} with {named} is up at {state.get('url', '')}, after {seconds:.1f} s.\n")
    if copied is not None:
        click.echo(f"It is a copy: {', '.join(plural(copied[kind], kind) for kind in SAID if copied.get(kind))}.")
        for note in state.get("notes", ()):
            click.echo(f"note: {note}")
        click.echo()
    click.echo(f"  export KUBECONFIG={cluster.kubeconfig.absolute()}\n")
    if copied is None:
        steps = cluster.directory.absolute() / FIRST_STEPS.name
        shutil.copyfile(FIRST_STEPS, steps)
        click.echo("Three things to try (with kubectl in place of situate, if you have it):\n")
        click.echo(f"  situate apply -f {steps}")
        click.echo("  situate get pods -A -o wide")
        click.echo("  situate why                         what waits, and why\n")
    else:
        click.echo("Three things to try:\n")
        click.echo("  situate status")
        click.echo("  situate why                         what waits, and why")
        click.echo("  situate plan survive                whether it would survive the loss of a zone, or a node\n")
    if state.get("page"):
        token = GrantFolder(cluster.directory / PAGE_FOLDER).create()
        click.echo("Watch it in a browser. This link works once; `situate web --login` prints another:\n")
        click.echo(f"  {state['page']}/login#{token}\n")
    click.echo(f"`situate status` shows its state; `{_down(cluster.directory)}` stops it, and keeps what it stored.")


def _merge(directory: Path, *, switch: bool) -> None:
    from situate.cli.cluster.merged_kubeconfig import add_context

    context = context_name(directory)
    path = add_context(context, directory, switch=switch)
    if path is not None:
        current = " and is the current one" if switch else f": kubectl --context {context}"
        click.echo(f"The context {context} is in {path}{current}.")
