"""`situate top`: what its frames show, its keys, and a whole run in a terminal."""

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from situate.cli.commands.top.frame import KEYS, Screen, frame, printed
from situate.cli.commands.top.terminal import PressedKeys, keys_in
from situate.core.changes import NodeSeen, PodSeen
from situate.core.versions import DEFAULT
from situate.web.model import ClusterModel
from situate.web.rights import Scope
from situate.wire.objects import decode_node, decode_pod

WITHIN_S = 60.0


def situate(*words: str) -> str:
    argv = [sys.executable, "-m", "situate", *words]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    made = str(tmp_path_factory.mktemp("top") / "c")
    situate("up", "--dir", made, "--port", "0", "--nodes", "2", "--no-web")
    yield made
    situate("down", "--dir", made, "--delete")


def node(number: int, zone: str = "a", **spec: Any) -> NodeSeen:
    room = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    meta = {"name": f"node-{number:04}", "labels": {"topology.kubernetes.io/zone": zone}}
    body = {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec, "status": {"allocatable": room}}
    return NodeSeen(decode_node(msgspec.json.encode(body)))


def pod(name: str, node_name: str = "", cpu: str = "1", message: str = "") -> PodSeen:
    spec = {"nodeName": node_name, "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    meta = {"name": name, "namespace": "shop", "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"}
    status = {"conditions": [condition]} if message else {}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": status}
    return PodSeen(decode_pod(msgspec.json.encode(body)))


def model_of(*changes: Any) -> ClusterModel:
    model = ClusterModel(object(), Scope("", True), [], DEFAULT)  # type: ignore[arg-type]
    for change in changes:
        model._apply(change)
    model._flush()
    return model


def test_the_worst_nodes_come_first_and_what_waits_says_why() -> None:
    model = model_of(node(1), node(2), pod("web", "node-0002", "3"), pod("big", cpu="9", message="Insufficient cpu"))
    lines = printed(model, "https://here")
    assert lines[1:4] == [
        "Nodes   2",
        "Pods    1 placed, 1 waiting",
        "Cpu     ████████░░░░░░░░░░░░ 38 %, 3 of 8 requested",
    ]
    tables = [line.split() for line in lines[6:]]
    assert [row[0] for row in tables[:3]] == ["NODE", "node-0002", "node-0001"]
    assert "75 %" in lines[7]
    assert tables[-1][0] == "shop/big"
    assert lines[-1].split()[3:] == ["cpu=9", "Insufficient", "cpu"]


@pytest.mark.parametrize("view", ["map", "nodes", "waiting", "placements"])
@pytest.mark.parametrize("size", [(40, 10), (80, 24), (200, 60)])
def test_a_frame_is_never_larger_than_the_screen(size: tuple[int, int], view: str) -> None:
    model = model_of(*(node(number, zone=f"z{number % 3}") for number in range(5_000)), pod("big", message="no " * 200))
    lines = frame(model, "https://here", Screen(*size, view=view, colour=False))
    assert len(lines) == size[1]
    assert max(map(len, lines)) <= size[0]
    assert lines[-1] == KEYS[: size[0]] or lines[-1].endswith("…")


def test_a_map_that_has_no_room_for_every_node_shows_the_fullest_of_several() -> None:
    model = model_of(*(node(number) for number in range(5_000)), pod("web", "node-4000", "4"))
    lines = frame(model, "https://here", Screen(80, 24, colour=False))
    (zone,) = (line for line in lines if line.startswith("a: 5,000 nodes"))
    assert "the fullest of them" in zone
    assert sum(line.count("█") for line in lines[6:]) == 1


def test_a_name_that_would_control_the_terminal_is_text() -> None:
    model = model_of(node(1), pod("x", message="\x1b]0;title\x07\x1b[2J"))
    for view in ("map", "waiting"):
        assert "\x1b" not in "".join(frame(model, "https://here\x1b[2J", Screen(200, 24, view=view, colour=False)))


def test_keys_choose_views_scroll_and_quit() -> None:
    keys = PressedKeys()
    for key in keys_in("n\x1b[B\x1b[B\x1b[A"):
        keys.pressed(key)
    assert (keys.view, keys.offset, keys.quit) == ("nodes", 1, False)
    for key in keys_in("\tx\x1b[6~\x1b[5~\x1b[5~q"):
        keys.pressed(key)
    assert (keys.view, keys.offset, keys.quit) == ("waiting", 0, True)


def test_it_runs_in_a_terminal_until_q_and_leaves_it_as_it_was(directory: str) -> None:
    main, terminal = pty.openpty()
    words = [sys.executable, "-m", "situate", "top", "--cluster", directory]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}
    process = subprocess.Popen(words, stdin=terminal, stdout=terminal, stderr=terminal, env=environment)
    os.close(terminal)
    try:
        shown = _until(main, "live")
        os.write(main, b"n")
        shown += _until(main, "NODE")
        os.write(main, b"q")
        shown += _until(main, "\x1b[?1049l")
        assert process.wait(WITHIN_S) == 0
    finally:
        process.kill()
        process.wait()
        os.close(main)
    assert shown.startswith("\x1b[?1049h\x1b[?25l")


def test_where_there_is_no_terminal_it_prints_once(directory: str) -> None:
    lines = situate("top", "--cluster", directory).splitlines()
    assert lines[1].startswith("Nodes   ")
    assert any(line.startswith("NODE") for line in lines)


def test_a_cluster_that_does_not_answer_is_one_line(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "situate", "top", "--kubeconfig", str(tmp_path / "none")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=WITHIN_S)
    assert (done.returncode, done.stderr.count("\n"), done.stdout) == (2, 1, "")


def _until(main: int, words: str) -> str:
    shown, deadline = "", time.monotonic() + WITHIN_S
    while words not in shown:
        ready, _, _ = select.select([main], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, shown
        shown += os.read(main, 65_536).decode(errors="replace")
    return shown
