"""`situate up`: a cluster in one command. Starts a control plane in the background, and prints how to use it."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import click

from situate.agent.host_security import trust_statement
from situate.cli.cluster.connection import KUBECONFIG
from situate.cli.commands.server import control_plane_options, settings_of
from situate.cli.control_plane.state import read_state
from situate.cli.options import container_security
from situate.cli.output.text import plural
from situate.core.versions import KubernetesRules

READY_S: Final = 30.0
POLL_S: Final = 0.05
LOG: Final = "server.log"
LAST_LINES: Final = 5
RENAMED: Final = {"directory": "--dir", "names": "--name", "verbosity": "--v", "rules": "--kubernetes-version"}
"""Flags that do not have the name of their value."""


@click.command()
@control_plane_options
@click.option("--nodes", type=click.IntRange(0, 100_000), default=5, show_default=True, help="How many hollow nodes.")
@click.option("--no-scheduler", is_flag=True, help="Start none: for a fleet, or a scheduler of your own.")
@click.option("--foreground", is_flag=True, help="Run in the foreground; Ctrl-C stops it.")
def up(foreground: bool, no_scheduler: bool, **flags: Any) -> None:
    """Start a cluster here: API server, scheduler, controllers and hollow nodes. `situate down` stops it."""
    directory: Path = flags["directory"]
    found = read_state(directory)
    if found is not None:
        raise click.ClickException(
            f"a cluster is up already at {found['url']} (process {found['pid']}); `situate down` stops it"
        )
    if foreground:
        from situate.cli.control_plane.process import run

        sys.exit(run(settings_of(flags, scheduler=not no_scheduler, controllers=True)))
    begun = time.monotonic()
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    # The server checks the flags, and says what is wrong in one line: checking here would take as long again.
    state = _start(directory, flags, scheduler=not no_scheduler)
    _say(directory, state, time.monotonic() - begun, flags["nodes"], machine=flags["process_node"])
    if flags["process_node"]:
        security = container_security(flags["run_as_user"], flags["container_users"])
        click.echo(
            f'\nwarning: {trust_statement(security)}. See docs/guides/nodes.md, "Who must be trusted".', err=True
        )


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
    deadline = time.monotonic() + READY_S
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
    raise click.ClickException(f"the control plane is not ready after {READY_S:.0f} s; {log} says more")


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


def _say(directory: Path, state: dict[str, Any], seconds: float, nodes: int, *, machine: bool) -> None:
    named = plural(nodes, "hollow node")
    if machine:
        named = f"{named} and this machine" if nodes else "this machine as its node"
    click.echo(f"A cluster with {named} is up at {state['url']}, after {seconds:.1f} s.\n")
    click.echo(f"  export KUBECONFIG={(directory / KUBECONFIG).resolve()}\n")
    click.echo("Three things to try (with kubectl in place of situate, if you have it):\n")
    click.echo("  situate apply -f examples/up/first-steps.yaml    run something")
    click.echo("  situate get pods -A -o wide                      see where it went")
    click.echo("  situate describe pod too-big                     and why something waits\n")
    click.echo("`situate status` shows its state; `situate down` stops it, and keeps what it stored.")
