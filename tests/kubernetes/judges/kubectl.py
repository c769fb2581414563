"""kubectl's test/cmd: each group of commands in a process of its own, against the API and its controllers."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from kubernetes.judges.common import BUILD, KUBERNETES, PARTS, Outcome, build_program, copy_module, run
from kubernetes.judges.planes import BarePlane, bare_plane
from kubernetes.parts import PartFailedError

MODULE = "k8s.io/kubernetes"

DRIVER = Path(__file__).with_name("kubectl.sh")
FOLDERS = ("hack", "test", "third_party", "cluster", "api")
LIMIT_S = 400.0
"""Of one group."""
STARTS = 3
INLINE = ("api_resources", "auth_can_i", "auth_reconcile")
NETWORK = "https://raw.githubusercontent.com/kubernetes/kubernetes/master/"
BEGIN = "Running command: run_selected_tests"
COLOURS = re.compile(r"\x1b\[[0-9;]*m|\x1b\(B")
MAX_REASON = 300


def kubectl(only: Sequence[str] = ()) -> Outcome:
    """`only`: parts of the groups' names."""
    source, outcome = _checkout(), Outcome()
    groups = [group for group in _groups(source) if not only or any(part in group for part in only)]
    with ExitStack() as stack:
        made: BarePlane | None = None
        for group in groups:
            if made is None:
                made = _started(stack)
            why = _run_group(source, group, made)
            if why is None:
                outcome.passed.add(group)
            else:
                outcome.failed[group] = why
                stack.close()  # what a failed group leaves behind is no fair start for the next
                made = None
            print(f"  {group}: {'passed' if why is None else why}", flush=True)
    return outcome


def _started(stack: ExitStack) -> BarePlane:
    """A plane that may have to be started more than once, on a machine that is too busy."""
    for left in reversed(range(STARTS)):
        try:
            return stack.enter_context(bare_plane(BUILD / "kubectl" / "plane"))
        except PartFailedError:
            if not left:
                raise
    raise AssertionError("it is started at least once")


def _checkout() -> Path:
    """A copy that finds kubectl where a build of Kubernetes leaves it, and nothing on the network."""
    source = copy_module(MODULE, KUBERNETES, FOLDERS)
    programs = source / "_output" / "bin"
    programs.mkdir(parents=True, exist_ok=True)
    for name, path in (
        ("kubectl", PARTS.absolute() / "kubectl"),
        ("kubectl-convert", build_program("k8s.io/kubernetes/cmd/kubectl-convert")),
    ):
        (programs / name).unlink(missing_ok=True)
        (programs / name).symlink_to(path)
    for script in (source / "test" / "cmd").glob("*.sh"):
        text = script.read_text()
        if NETWORK in text:
            script.write_text(text.replace(NETWORK, ""))
    return source


def _groups(source: Path) -> Iterator[str]:
    yield from INLINE
    yield from re.findall(
        r"^ +record_command (run_\w+)$", (source / "test/cmd/legacy-script.sh").read_text(), re.MULTILINE
    )


def _run_group(source: Path, group: str, made: BarePlane) -> str | None:
    """Why it failed, or None."""
    log, reports = BUILD / "kubectl" / f"{group}.log", BUILD / "kubectl" / "junit" / group
    shutil.rmtree(reports, ignore_errors=True)
    environment = {
        "SECURE_API_PORT": str(made.port),
        "CERTIFICATE": str(made.certificate),
        "KUBE_JUNIT_REPORT_DIR": str(reports),
        "TERM": "xterm",
    }
    code = run(["bash", DRIVER, source, group], source, LIMIT_S, log, environment)
    return None if code == 0 else _reason(log, code)


def _reason(log: Path, code: int) -> str:
    """The first complaint after the group began."""
    lines = [COLOURS.sub("", line).strip() for line in log.read_text(errors="replace").splitlines()]
    if code == 124:
        return f"not done after {LIMIT_S:g} s; last: {lines[-1] if lines else ''}"[:MAX_REASON]
    began = next((number for number, line in enumerate(lines) if line == BEGIN), 0)
    for number, line in enumerate(lines[began:], began):
        if "FAIL!" in line:
            return " ".join(lines[number : number + 5])[:MAX_REASON]
        if line.startswith("!!! "):
            return " ".join([*lines[max(0, number - 2) : number], lines[number + 1]])[:MAX_REASON]
    return " ".join(lines[-4:])[:MAX_REASON]
