"""The `situate` command. Each subcommand is a file or package below commands/, imported only to run it.

This module imports neither numpy nor the core, so that `situate --help` answers at once. It is also the one place that
turns a mistake in the input into one line on stderr and an exit code. A traceback always means a bug of ours.

| exit code | meaning                                                            |
|-----------|--------------------------------------------------------------------|
| 0         | done                                                               |
| 1         | done, and the answer is no (each command says what its no is)      |
| 2         | the input or the arguments are wrong; nothing was done             |
| 130       | interrupted                                                        |
| 141       | the reader of our output closed the pipe                           |
"""

import contextlib
import errno
import importlib
import os
import sys
from difflib import get_close_matches
from typing import IO, Any

import click

from situate import __version__

BAD_INPUT = 2
INTERRUPTED = 130
READER_GONE = 141
MAX_ERROR_CHARS = 2_000
WHOLE = 1_000
"""How long the summary of a command may be: as long as it is."""

# The one table of commands, in the groups that `--help` shows. Each command is the object of its own name in the module
# of its own name below commands/. The summary is here and not in the command's docstring, because `--help` must list
# commands without importing them.
COMMANDS: dict[str, dict[str, str]] = {
    "Cluster": {
        "up": "Start a cluster here: API server, scheduler, controllers and hollow nodes.",
        "down": "Stop the cluster that `situate up` started.",
        "clusters": "List the clusters on this machine.",
        "backup": "Back up a whole cluster to a file, while it runs.",
        "restore": "Restore a cluster from a backup.",
        "status": "Show the state of a cluster: totals, its fullest nodes, what is in trouble.",
        "apply": "Create or update the objects in files.",
        "get": "Show objects of a cluster.",
        "describe": "Show an object in detail: its fields, its placement and its events.",
        "delete": "Delete objects of a cluster.",
        "events": "Show what happened to placements: binds, evictions and repairs, one line each.",
        "top": "Show a cluster live in the terminal: its nodes, what waits, what was placed.",
        "web": "Serve a page that shows a cluster live, or print a new login link to it.",
        "node": "Add nodes to a cluster: hollow ones, or this machine.",
        "user": "Give people access to a cluster, and take it back.",
        "token": "Make, list and revoke tokens of users, service accounts and nodes.",
        "certificates": "List and rotate the keys and certificates of a cluster.",
        "server": "Serve the Kubernetes API in the foreground.",
        "scheduler": "Schedule the pods of a real cluster, with kube-scheduler's flags.",
        "controllers": "Run the controllers in a process of their own.",
    },
    "Ask": {
        "why": "Explain why a pod waits or runs where it does, and what would change that.",
        "place": "Place the pending pods of some files, and say where and why.",
        "check": "Find problems in workloads before the scheduler does.",
    },
    "Plan": {
        "plan": "Answer capacity questions: what fits, how many nodes, losses, drains, defragmentation.",
        "simulate": "Simulate workloads on a cluster, and compare scheduler configurations.",
        "trace": "Run a public cluster trace, and compare policies on it.",
    },
    "Develop": {
        "envtest": "Stand in for kube-apiserver and etcd in tests of Go projects.",
        "examples": "Copy the examples of the documentation to a directory.",
        "config": "Validate a scheduler configuration, or print the default one.",
        "bench": "Measure how fast the pods of a workload file are placed.",
        "conformance": "Compare decisions with recorded ones of kube-scheduler.",
        "replay": "Run a journal again, and check that every effect matches the recording.",
        "sim": "Run the scheduler in simulated worlds full of faults, and check its invariants.",
    },
    "About": {
        "version": "Show the version of this program and of the cluster's API server.",
        "completion": "Print a script that makes the shell complete commands and options.",
        "man": "Write a manual page for each command.",
    },
}
SUMMARIES: dict[str, str] = {name: summary for group in COMMANDS.values() for name, summary in group.items()}


class BadInput(click.ClickException):
    """The input or the arguments are wrong: one line, exit code 2."""

    exit_code = BAD_INPUT

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"error: {one_line(self.message)}", file=file, err=True)


class CommandRefused(click.ClickException):
    """The cluster, or this machine, refuses: one line, exit code 1."""

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"error: {one_line(self.message)}", file=file, err=True)


class CommandGroup(click.Group):
    """Shows the summary of each command in full, and suggests a name for a misspelt one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        names = self.list_commands(ctx)
        if args and not args[0].startswith("-") and args[0] not in names:
            alike = get_close_matches(args[0], names, n=1)
            path = " ".join(["situate", *ctx.command_path.split()[1:]])
            hint = f"did you mean `{path} {alike[0]}`?" if alike else f"`{path} --help` lists the commands"
            raise BadInput(f"no such command: {args[0]}; {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, one.get_short_help_str(WHOLE)) for name, one in commands if one is not None])


class LazyGroup(CommandGroup):
    """Knows the names and summaries of the commands, and imports one only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(SUMMARIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in SUMMARIES:
            return None
        command: click.Command = getattr(importlib.import_module(f"{__name__}.commands.{cmd_name}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        widest = max(map(len, SUMMARIES))
        for title, group in COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(widest), summary) for name, summary in group.items()])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # so that a closed pipe raises here, and not while the interpreter exits
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)
        except ModuleNotFoundError as error:
            library = (error.name or "situate").partition(".")[0]
            if library == "situate":
                raise
            raise BadInput(f"this needs the library {library}, which is not installed: pip install situate") from error
        except OSError as error:
            if error.errno == errno.EPIPE:
                _silence_stdout()
                ctx.exit(READER_GONE)
            if error.filename is None:
                raise
            raise BadInput(f"{error.filename}: {error.strerror}") from error
        except (BadInput, click.exceptions.NoArgsIsHelpError):
            raise
        except click.UsageError as error:
            where = ctx.command_path if error.ctx is None else error.ctx.command_path
            raise BadInput(f"{error.format_message().rstrip('.')} (see `{where} --help`)") from error
        except click.ClickException as error:
            if error.exit_code != CommandRefused.exit_code:
                raise
            raise CommandRefused(error.format_message()) from error
        except Exception as error:
            if not _is_input_error(error):
                raise
            raise BadInput(str(error)) from error
        return result


def one_line(text: str) -> str:
    """The text on one line of bounded length, without characters that control a terminal."""
    from situate.cli.output.text import printable

    shown = printable(" ".join(text.split()))
    return shown if len(shown) <= MAX_ERROR_CHARS else shown[: MAX_ERROR_CHARS - 1] + "…"


def _is_input_error(error: Exception) -> bool:
    """Whether the input is wrong, or a plugin that is not ours."""
    from situate.wire.errors import InputError

    if isinstance(error, InputError):
        return True
    from situate.core.plugins.support.errors import PluginError

    return isinstance(error, PluginError)


def _silence_stdout() -> None:
    """Discard what is still buffered, or the interpreter complains when it exits."""
    with contextlib.suppress(OSError, ValueError):  # stdout may have no file descriptor, under a test
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, sys.stdout.fileno())
        os.close(devnull)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="situate", message="%(prog)s %(version)s")
def main() -> None:
    """Decide where Kubernetes workloads run, as kube-scheduler would, and explain why."""
