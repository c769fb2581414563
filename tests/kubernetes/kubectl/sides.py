"""The two servers that kubectl talks to, and what is left of its output when what differs by nature is taken out."""

import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import yaml

from kubernetes.kubectl.steps import Step
from kubernetes.parts import folder, wait_until

STEP_S = 30.0

# What no two servers can have in common. Widths of columns are kept, but where an address of a service makes them.
CHANGED = (
    # Notes of kubectl's own, with the time and its process.
    (re.compile(r"^[IWE]\d{4} \d\d:.*\n", re.MULTILINE), ""),
    (re.compile(r"https://127\.0\.0\.1:\d+"), "<server>"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "<uid>"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "<time>"),
    (re.compile(r"\b\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}"), "<date>"),
    (re.compile(r"(?<=resourceVersion: )([\"'])\d+\1"), "<version>"),
    (re.compile(r"(?<=resourceVersion\":)( ?)\"\d+\""), r'\1"<version>"'),
    (re.compile(r"(?<=Resource Version: )( *)\d+"), r'\1"<version>"'),
    (re.compile(r"(?<= )(\d+m)?\d{1,2}s\b *"), "<age> "),
)
SERVICE_ADDRESS = re.compile(r"\b10\.96\.\d+\.\d+\b|\b10\.\d+\.\d+\.\d+\b")
SPACES = re.compile(r" +")
PORT_OF_NODE = re.compile(r"\b3[0-2]\d{3}\b")


@dataclass(frozen=True, slots=True)
class Outcome:
    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Side:
    """One server, by its administrator."""

    name: str
    kubeconfig: Path
    home: Path
    """Of kubectl's cache: what one server says it serves is not the other's."""

    def environment(self, env: dict[str, str] | None = None) -> dict[str, str]:
        own = {"KUBECONFIG": str(self.kubeconfig), "HOME": str(self.home), "TMPDIR": str(self.home), "TZ": "UTC"}
        # It is done before garbage would matter.
        return os.environ | own | {"GOGC": "off"} | (env or {})

    def command(self, namespace: str, words: list[str]) -> list[str]:
        return [str(folder() / "kubectl"), "--namespace", namespace, *words]

    def run(self, namespace: str, command: str, *, stdin: str = "", env: dict[str, str] | None = None) -> Outcome:
        done = subprocess.run(
            self.command(namespace, shlex.split(command)),
            input=stdin,
            env=self.environment(env),
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=STEP_S,
            check=False,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    def step(self, namespace: str, step: Step) -> Outcome:
        return self.run(namespace, step.command, stdin=step.stdin, env=dict(step.env))


def settled(text: str) -> str:
    """The text without what is another on each server: ages, identities, versions, addresses."""
    for pattern, instead in CHANGED:
        text = pattern.sub(instead, text)
    if SERVICE_ADDRESS.search(text):
        text = SPACES.sub(" ", PORT_OF_NODE.sub("<port>", SERVICE_ADDRESS.sub("<address>", text)))
    return text


def by_manager(text: str) -> str:
    """managedFields come in the order of their times, in seconds; that of two within one second is nobody's doing."""
    if not text.startswith("apiVersion:") or "managedFields:" not in text:
        return text
    whole = yaml.load(text, Loader=yaml.CSafeLoader)
    for item in whole.get("items", [whole]):
        item["metadata"].get("managedFields", []).sort(key=lambda entry: (entry.get("manager", ""), entry["operation"]))
    shown: str = yaml.dump(whole, Dumper=yaml.CSafeDumper)
    return shown


def comparable(step: Step, outcome: Outcome) -> Outcome:
    return Outcome(outcome.code, step.view(settled(by_manager(outcome.out))), step.view(settled(outcome.err)))


@contextmanager
def watching(side: Side, namespace: str, command: str) -> Iterator[Callable[[int], list[str]]]:
    """kubectl that goes on, from when its watch was answered. Yields how to wait for so many lines, and see them."""
    with tempfile.TemporaryFile("w+", dir=side.home) as output, tempfile.TemporaryFile("w+", dir=side.home) as notes:
        process = subprocess.Popen(
            side.command(namespace, [*shlex.split(command), "-v=6"]),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=notes,
            env=side.environment(),
            cwd=side.home,
        )

        def written(file: IO[str]) -> str:
            file.seek(0)
            return file.read()

        def lines(count: int) -> list[str]:
            def printed() -> list[str]:
                return settled(written(output)).splitlines()[:count]

            wait_until(lambda: len(printed()) == count, f"{count} lines of kubectl {command}", STEP_S)
            return printed()

        try:
            wait_until(lambda: "watch=true" in written(notes), f"kubectl {command} to watch", STEP_S)
            yield lines
        finally:
            process.terminate()
            process.wait()
