"""Starting a process of a container: what it inherits, what it does not, and what is said of one that cannot start."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from situate.agent.runtime import ProcessSecurity

LAUNCH = """
import json, os, signal, sys
from situate.agent import launch
given, joined, orphaned = json.load(sys.stdin)
signal.signal(signal.SIGINT, signal.SIG_IGN)
os.umask(0o077)
os.set_inheritable(os.dup(1), True)
before = len(os.listdir("/proc/self/fd"))
if orphaned:
    os.getpid = lambda: 1 << 30
made = []
for order, argv in given:
    launched = launch.launch(order, argv, joined=joined)
    said, code = [os.fdopen(output, "rb").read().decode() for output in launched.outputs], None
    if launched.pid:
        code = os.waitstatus_to_exitcode(os.waitpid(launched.pid, 0)[1])
    made.append([launched.problem, launched.pid, said, code])
try:
    os.waitpid(-1, os.WNOHANG)
    unreaped = True
except ChildProcessError:
    unreaped = False
print(json.dumps([made, unreaped, len(os.listdir("/proc/self/fd")) - before]))
"""
"""In a process of its own, because a process with threads must not fork."""

Found = tuple[str, int, list[str], int | None]
"""The problem, the pid, each output, and the exit code."""


def order_in(tmp_path: Path, **more: Any) -> dict[str, Any]:
    return {
        "cgroup": "",
        "rlimits": {},
        "cwd": str(tmp_path),
        "chdir_as_user": False,
        "security": asdict(ProcessSecurity()),
        "env": {"PATH": os.environ["PATH"], "OWN": "1"},
        **more,
    }


def launch_all(
    given: Sequence[tuple[dict[str, Any], Sequence[str]]], *, joined: bool = False, orphaned: bool = False
) -> list[Found]:
    """One after the other. No child may be left, and no open file."""
    asked = json.dumps([given, joined, orphaned])
    done = subprocess.run([sys.executable, "-c", LAUNCH], input=asked, capture_output=True, check=True, text=True)
    made, unreaped, opened = json.loads(done.stdout)
    assert (unreaped, opened) == (False, 0)
    return [tuple(one) for one in made]


def launched(tmp_path: Path, *argv: str, joined: bool = False, orphaned: bool = False, **more: Any) -> Found:
    return launch_all([(order_in(tmp_path, **more), argv)], joined=joined, orphaned=orphaned)[0]


def python(tmp_path: Path, expression: str, **more: Any) -> Any:
    """The value of an expression in the launched process."""
    script = f"import ctypes, json, os, resource, signal, sys; print(json.dumps({expression}))"
    problem, _, said, code = launched(tmp_path, sys.executable, "-I", "-c", script, **more)
    assert (problem, code) == ("", 0), said
    return json.loads(said[0])


def test_a_process_has_its_own_output_and_environment(tmp_path: Path) -> None:
    problem, pid, said, code = launched(tmp_path, "sh", "-c", "echo out$OWN; echo err >&2; exit 3")
    assert (problem, said, code) == ("", ["out1\n", "err\n"], 3)
    assert pid
    said = launched(tmp_path, "sh", "-c", "echo out; echo err >&2", joined=True)[2]
    assert said == ["out\nerr\n"]


def test_a_process_inherits_no_open_file_no_ignored_signal_and_no_mask(tmp_path: Path) -> None:
    facts = python(
        tmp_path,
        """[
            sorted(map(int, os.listdir('/proc/self/fd'))),
            os.readlink('/proc/self/fd/0'),
            os.getsid(0) == os.getpid(),
            os.umask(0),
            os.getcwd(),
        ]""",
    )
    listing = 3
    assert facts == [[0, 1, 2, listing], "/dev/null", True, 0o022, str(tmp_path)]
    said = launched(tmp_path, "sh", "-c", "grep SigIgn /proc/self/status")[2]
    ignored = int(said[0].split()[1], 16)
    ours = (signal.SIGCHLD, signal.SIGTERM, signal.SIGUSR1, signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ)
    assert not [one for one in ours if ignored >> (one - 1) & 1], "Python ignores the last two"


def test_a_process_has_the_ordinary_priority_if_that_is_allowed(tmp_path: Path) -> None:
    now = os.getpriority(os.PRIO_PROCESS, 0)
    allowed = os.geteuid() == 0 or now <= 0
    assert python(tmp_path, "os.getpriority(os.PRIO_PROCESS, 0)") == (0 if allowed else now)


def test_a_process_ends_with_the_one_that_started_it(tmp_path: Path) -> None:
    asked = "(lambda got: (ctypes.CDLL(None).prctl(2, ctypes.byref(got)), got.value))(ctypes.c_int())"
    assert python(tmp_path, asked) == [0, signal.SIGKILL]


def test_a_process_whose_shim_is_gone_does_not_begin(tmp_path: Path) -> None:
    """The shim was killed before the process could ask to be killed with it."""
    assert launched(tmp_path, "touch", "begun", orphaned=True)[2:] == (["", ""], 127)
    assert not (tmp_path / "begun").exists()


def test_a_process_has_its_limits_and_is_in_its_control_group(tmp_path: Path) -> None:
    (tmp_path / "cgroup.procs").touch()
    limits = {"RLIMIT_CORE": 0, "RLIMIT_NOFILE": 77}
    found = python(tmp_path, "resource.getrlimit(resource.RLIMIT_NOFILE)", rlimits=limits, cgroup=str(tmp_path))
    assert found == [77, 77]
    assert (tmp_path / "cgroup.procs").read_text() == "0", "0 is whoever writes it"


def test_why_a_process_cannot_start(tmp_path: Path) -> None:
    (tmp_path / "plain").touch(mode=0o644)
    (tmp_path / "empty").touch(mode=0o755)
    (tmp_path / "empty").write_bytes(b"\x7fELF")
    missing, nowhere = "no such file or directory", "executable file not found in $PATH"
    given: list[tuple[str, dict[str, Any], str]] = [
        ("none", {}, f'exec: "none": {nowhere}'),
        ("none", {"env": {}}, f'exec: "none": {nowhere}'),
        ("./none", {}, f'exec: "./none": {missing}'),
        ("plain", {}, 'exec: "plain": permission denied'),
        ("empty", {}, 'exec: "empty": exec format error'),
        ("a\0b", {}, 'exec: "a\0b": '),
        ("none", {"cwd": "/none"}, f"changing to its directory /none: {missing}"),
        ("none", {"cwd": "/none", "chdir_as_user": True}, f"changing to its directory /none: {missing}"),
        ("none", {"cgroup": "/none"}, f"joining its control group: {missing}"),
        ("none", {"rlimits": {"RLIMIT_CORE": "x"}}, "limiting it: "),
    ]
    found = launch_all(
        [(order_in(tmp_path, **{"env": {"PATH": str(tmp_path)}, **more}), [name]) for name, more, _ in given]
    )
    for (_, _, problem), (said, pid, outputs, code) in zip(given, found, strict=True):
        assert said.startswith(problem)
        assert (pid, outputs, code) == (0, [], None)


def test_processes_that_cannot_start_leave_nothing_behind(tmp_path: Path) -> None:
    """`launch_all` asserts it, too."""
    found = launch_all([(order_in(tmp_path), ["none"])] * 30)
    assert {pid for _, pid, _, _ in found} == {0}
