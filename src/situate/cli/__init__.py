"""The `situate` command: one file or package a command, each imported only when it is asked for.

This module imports neither numpy nor the core, so that `situate --help` answers at once. It is also the one place that
turns somebody else's fault into one line on stderr and an exit code. A traceback is for our own faults only.

| exit code | meaning                                                            |
|-----------|--------------------------------------------------------------------|
| 0         | done                                                               |
| 1         | done, and the answer is no (each command says what its no is)      |
| 2         | the input or the arguments are wrong; nothing was done             |
| 130       | interrupted                                                        |
| 141       | whoever was reading our output went away                           |
"""

import contextlib
import errno
import importlib
import os
import sys
from typing import IO, Any

import click

from situate import __version__

BAD_INPUT = 2
INTERRUPTED = 130
READER_GONE = 141
MAX_ERROR_CHARS = 2_000

# Each command is the object of its own name in the module of its own name. The summary stands here and not in the
# command's docstring, because listing the commands must not import them.
SUMMARIES: dict[str, str] = {
    "apply": "Make a cluster's objects as files say.",
    "bench": "Time the placement of a workload file.",
    "config": "Validate a scheduler configuration, or print the default one.",
    "check": "Find what is wrong with workloads before a scheduler does.",
    "conformance": "Compare our decisions with recorded ones.",
    "controllers": "Run the controllers in a process of their own.",
    "delete": "Delete objects of a cluster.",
    "describe": "Describe an object of a cluster, why it is where it is, and what happened to it.",
    "down": "Stop the cluster that `situate up` started.",
    "events": "Tell what happened to placements: binds, evictions, repairs; one line each.",
    "get": "Show objects of a cluster.",
    "node": "Bring nodes to a cluster: hollow ones, or this machine.",
    "place": "Place the waiting pods of some files, and say where and why.",
    "plan": "Say how much more fits, how many nodes it takes, what a loss or a drain would do, and what makes room.",
    "replay": "Step through a journal again, and say whether every effect comes out as recorded.",
    "scheduler": "Schedule the pods of a real cluster, with kube-scheduler's flags.",
    "server": "Serve the Kubernetes API in the foreground.",
    "sim": "Run the scheduler in virtual worlds full of faults, and hold it to account.",
    "simulate": "Simulate what becomes of workloads on a cluster, and compare configurations.",
    "status": "Say how the cluster is.",
    "trace": "Play a public trace of a cluster, and compare policies on it.",
    "up": "Start a cluster here: API, scheduler, controllers and hollow nodes.",
    "why": "Say why a pod waits, or why it is where it is, and what would change that.",
}


class BadInput(click.ClickException):
    """What somebody gave us is wrong: one line, exit code 2."""

    exit_code = BAD_INPUT

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"error: {one_line(self.message)}", file=file, err=True)


class LazyGroup(click.Group):
    """A group that knows its commands' names and summaries, and imports one only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(SUMMARIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in SUMMARIES:
            return None
        command: click.Command = getattr(importlib.import_module(f"{__name__}.commands.{cmd_name}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, SUMMARIES[name]) for name in self.list_commands(ctx)])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # so that a reader who has gone is noticed here, and not while the interpreter exits
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)
        except OSError as error:
            if error.errno == errno.EPIPE:
                _silence_stdout()
                ctx.exit(READER_GONE)
            if error.filename is None:
                raise
            raise BadInput(f"{error.filename}: {error.strerror}") from error
        except Exception as error:
            if not _is_somebody_elses(error):
                raise
            raise BadInput(str(error)) from error
        return result


def one_line(text: str) -> str:
    """The text on one line of bounded length, with nothing in it that a terminal would obey."""
    flat = " ".join(text.split())
    shown = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in flat)
    return shown if len(shown) <= MAX_ERROR_CHARS else shown[: MAX_ERROR_CHARS - 1] + "…"


def _is_somebody_elses(error: Exception) -> bool:
    """Whether it is the input that is wrong, or a plugin that is not ours."""
    from situate.wire.errors import InputError

    if isinstance(error, InputError):
        return True
    from situate.core.plugins.support.errors import PluginError

    return isinstance(error, PluginError)


def _silence_stdout() -> None:
    """Let what is still buffered go nowhere, or the interpreter complains about it on its way out."""
    with contextlib.suppress(OSError, ValueError):  # stdout may have no file descriptor, under a test
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, sys.stdout.fileno())
        os.close(devnull)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="situate", message="%(prog)s %(version)s")
def main() -> None:
    """Decide where Kubernetes workloads run, as kube-scheduler would, and say why."""
