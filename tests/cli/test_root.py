"""The root of the command line: late imports, and every fault that is not ours as one line and an exit code."""

import errno
import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace

import click
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from situate import __version__
from situate.cli import MAX_ERROR_CHARS, SUMMARIES, main, one_line
from situate.wire.errors import InputError


def raising(error: BaseException) -> Callable[[], None]:
    def body() -> None:
        raise error

    return body


def run_place(monkeypatch: pytest.MonkeyPatch, body: Callable[[], None]) -> Result:
    """Run `situate place` with this body in place of its own."""
    module = SimpleNamespace(place=click.command("place")(body))
    monkeypatch.setitem(sys.modules, "situate.cli.commands.place", module)
    return CliRunner().invoke(main, ["place"])


def test_help_imports_neither_numpy_nor_the_core() -> None:
    program = (
        "import sys; from situate.cli import main; main(['--help'], standalone_mode=False); "
        "sys.exit(', '.join(m for m in sys.modules if m.split('.')[0] in ('numpy', 'msgspec', 'yaml', 'rich') "
        "or m.startswith('situate.core')) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert all(name in done.stdout for name in SUMMARIES)


def test_python_dash_m_is_the_same_program() -> None:
    done = subprocess.run([sys.executable, "-m", "situate", "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"situate {__version__}\n")


@pytest.mark.parametrize("name", sorted(SUMMARIES))
def test_each_command_of_the_list_is_there(name: str) -> None:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    assert command.name == name


def test_an_unknown_command_is_a_usage_error() -> None:
    result = CliRunner().invoke(main, ["plaice"])
    assert result.exit_code == 2
    assert result.stderr == "error: no such command: plaice; did you mean `situate place`?\n"
    result = CliRunner().invoke(main, ["xyzzy"])
    assert result.stderr == "error: no such command: xyzzy; `situate --help` lists the commands\n"
    result = CliRunner().invoke(main, ["plan", "surviv"], prog_name="situate")
    assert result.exit_code == 2
    assert result.stderr == "error: no such command: surviv; did you mean `situate plan survive`?\n"


def test_the_help_of_a_group_shows_the_summaries_of_its_commands_in_full() -> None:
    for group in ("plan", "node", "token", "certificates", "envtest"):
        told = CliRunner().invoke(main, [group, "--help"], prog_name="situate").stdout
        assert "..." not in told.replace("[ARGS]...", ""), told


@pytest.mark.parametrize(
    "words, line",
    [
        pytest.param(["get", "--outptu", "json"], "Did you mean '--output'?", id="a misspelt option"),
        pytest.param(["completion"], "Missing argument", id="a missing argument"),
        pytest.param(["clusters", "-o", "xml"], "is not one of", id="a value that is not one of the choices"),
    ],
)
def test_a_usage_error_is_one_line_that_names_the_help(words: list[str], line: str) -> None:
    result = CliRunner().invoke(main, words, prog_name="situate")
    assert (result.exit_code, result.stdout, len(result.stderr.splitlines())) == (2, "", 1)
    assert result.stderr.startswith("error: ")
    assert line in result.stderr
    assert result.stderr.endswith(f" (see `situate {words[0]} --help`)\n")


@pytest.mark.parametrize(
    "error, line",
    [
        pytest.param(InputError("a.yaml: not YAML"), "error: a.yaml: not YAML\n", id="bad input"),
        pytest.param(InputError("two\n  lines"), "error: two lines\n", id="a message of several lines is one line"),
        pytest.param(
            FileNotFoundError(errno.ENOENT, "No such file or directory", "a.yaml"),
            "error: a.yaml: No such file or directory\n",
            id="a file that is not there",
        ),
    ],
)
def test_somebody_elses_fault_is_one_line_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, error: Exception, line: str
) -> None:
    result = run_place(monkeypatch, raising(error))
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", line)


@pytest.mark.parametrize(
    "error, exit_code",
    [
        pytest.param(KeyboardInterrupt(), 130, id="an interrupt"),
        pytest.param(BrokenPipeError(errno.EPIPE, "Broken pipe"), 141, id="a reader who went away"),
    ],
)
def test_the_end_is_silent_after(monkeypatch: pytest.MonkeyPatch, error: BaseException, exit_code: int) -> None:
    result = run_place(monkeypatch, raising(error))
    assert (result.exit_code, result.output) == (exit_code, "")


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(KeyError("row"), id="a key that should be there"),
        pytest.param(OSError(errno.EIO, "Input/output error"), id="an I/O error of no file"),
    ],
)
def test_our_own_fault_is_not_hidden(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    assert run_place(monkeypatch, raising(error)).exception is error


def test_a_reader_who_goes_away_is_not_an_error_of_ours() -> None:
    program = (
        "import sys, types, click\n"
        "def place():\n"
        "    for number in range(100_000): print(number)\n"
        "sys.modules['situate.cli.commands.place'] = types.SimpleNamespace(place=click.command()(place))\n"
        "from situate.cli import main\n"
        "main(['place'])\n"
    )
    running = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if running.stdout is None or running.stderr is None:
        raise RuntimeError("no pipes")
    running.stdout.readline()
    running.stdout.close()
    said = running.stderr.read()
    running.stderr.close()
    assert (running.wait(), said) == (141, b"")


@given(st.text(max_size=3 * MAX_ERROR_CHARS))
def test_a_line_is_one_bounded_printable_line(text: str) -> None:
    line = one_line(text)
    assert len(line) <= MAX_ERROR_CHARS
    assert line.isprintable()


@given(st.text(st.characters(categories=["L", "N", "P"]), max_size=100))
def test_a_line_that_is_one_already_is_left_as_it_is(text: str) -> None:
    assert one_line(text) == text
