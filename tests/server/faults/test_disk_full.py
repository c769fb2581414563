"""No room left for the store: writes are refused and say so, reads and watches go on, and room that is made is used."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from server.faults.process import Plane
from server.faults.small_disk import fill, small_disk
from server.faults.wire import Answer, Wire

MAPS = "/api/v1/namespaces/default/configmaps"
LIMIT = "4Mi"
SIZE = 200_000
FULL = 507
WITHIN_S = 10.0


def config_map(name: str, size: int = SIZE) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "x" * size}}


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[Plane]:
    with Plane(tmp_path / "plane", "--store-limit", LIMIT) as plane:
        yield plane


@pytest.fixture
def wire(plane: Plane) -> Iterator[Wire]:
    with Wire(plane.port, plane.admin()) as wire:
        yield wire


def names(wire: Wire) -> list[str]:
    listed = json.loads(wire.ask("GET", MAPS).body)["items"]
    return [one["metadata"]["name"] for one in listed if one["metadata"]["name"].startswith("large")]


def filled(wire: Wire) -> tuple[list[str], Answer]:
    """What was acknowledged, and the refusal."""
    made: list[str] = []
    while True:
        name = f"large-{len(made):03}"
        answer = wire.send("POST", MAPS, config_map(name))
        if answer.code != 201:
            return made, answer
        made.append(name)
        assert len(made) < 1000


def test_a_write_that_has_no_room_is_refused_with_507_and_leaves_nothing(wire: Wire) -> None:
    made, refused = filled(wire)
    status = json.loads(refused.body)
    assert (refused.code, status["code"], status["reason"]) == (FULL, FULL, "InsufficientStorage")
    assert "no room" in status["message"]
    assert "nothing was written" in status["message"]
    assert names(wire) == made
    for _ in range(3):  # every kind of write, and each time
        assert wire.send("POST", MAPS, config_map("large-more")).code == FULL
        assert wire.send("PUT", f"{MAPS}/{made[0]}", config_map(made[0], SIZE + 1)).code == FULL
    assert names(wire) == made
    assert len(json.loads(wire.ask("GET", f"{MAPS}/{made[0]}").body)["data"]["a"]) == SIZE


def test_reads_and_watches_go_on(plane: Plane, wire: Wire) -> None:
    made, _ = filled(wire)
    assert wire.ask("GET", f"{MAPS}/{made[0]}").code == 200
    assert b"[-]store failed" in wire.ask("GET", "/readyz").body
    with Wire(plane.port, plane.admin()) as watching:
        since = json.loads(wire.ask("GET", MAPS).body)["metadata"]["resourceVersion"]
        path = f"{MAPS}?watch=1&resourceVersion={since}&timeoutSeconds=5"
        connection = watching.connect()
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert wire.send("POST", MAPS, config_map("large-more")).code == FULL
        assert wire.ask("DELETE", f"{MAPS}/{made[0]}").code == 200
        heard = b""
        while b'"DELETED"' not in heard:
            heard += connection.recv(65536)
        assert b"large-more" not in heard


def test_room_that_is_made_is_used(wire: Wire) -> None:
    made, _ = filled(wire)
    for name in made:
        assert wire.ask("DELETE", f"{MAPS}/{name}").code == 200
    assert names(wire) == []
    # What was deleted is still in the history: that goes when a write finds no room, and the next one finds it.
    deadline = time.monotonic() + WITHIN_S
    while (answer := wire.send("POST", MAPS, config_map("large-again"))).code == FULL:
        assert time.monotonic() < deadline, answer.body
    assert answer.code == 201
    assert names(wire) == ["large-again"]


def test_a_full_store_is_opened_again_and_still_knows_everything(plane: Plane, wire: Wire) -> None:
    made, _ = filled(wire)
    plane.kill()
    plane.start()
    with Wire(plane.port, plane.admin()) as again:
        assert names(again) == made
        assert again.send("POST", MAPS, config_map("large-more")).code == FULL


# ── a disk that others have filled ──────────────────────────────────────────────────────────────────────────────────

WITH_NODES = ("--nodes", "2", "--with", "scheduler", "--with", "controllers")


def metric(wire: Wire, name: str) -> float:
    lines = wire.ask("GET", "/metrics").body.decode().splitlines()
    return float(next(line for line in lines if line.startswith(f"{name} ")).split()[1])


def until_code(wire: Wire, path: str, code: int) -> Answer:
    deadline = time.monotonic() + WITHIN_S
    while (answer := wire.ask("GET", path)).code != code:
        assert time.monotonic() < deadline, answer.body
        time.sleep(0.05)
    return answer


def test_a_disk_that_others_fill_stops_creates_only_and_all_goes_on_when_it_is_free(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "48m") as disk, Plane(disk / "plane", *WITH_NODES, log=tmp_path) as plane:
        with Wire(plane.port, plane.admin()) as wire:
            made = [f"large-{number}" for number in range(8)]
            assert {wire.send("POST", MAPS, config_map(name)).code for name in made} == {201}
            assert metric(wire, "situate_store_full") == 0
            filler = fill(disk)
            refused, codes = 0, []
            deadline = time.monotonic() + WITHIN_S
            while not refused:
                answer = wire.send("POST", MAPS, config_map(f"large-{len(made)}"))
                refused += answer.code == FULL
                made += [f"large-{len(made)}"] * (answer.code == 201)
                assert time.monotonic() < deadline
            assert b"[-]store failed" in until_code(wire, "/readyz", 500).body
            assert metric(wire, "situate_store_full") == 1
            # Overwrites that hardly grow work, so that nodes keep their leases; and so do deletes.
            renewed = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-1"
            for number in range(200):
                lease = json.loads(wire.ask("GET", renewed).body)
                lease["metadata"]["annotations"] = {"renewed": f"{number:03}"}
                codes.append(wire.send("PUT", renewed, lease).code)
            assert set(codes) <= {200, 409}, codes
            assert codes.count(200) > 150
            for name in made[2:]:
                assert wire.ask("DELETE", f"{MAPS}/{name}").code == 200
            assert sorted(names(wire)) == made[:2]
            # The disk is free again: no restart.
            filler.unlink()
            until_code(wire, "/readyz", 200)
            assert metric(wire, "situate_store_full") == 0
            assert wire.send("POST", MAPS, config_map("large-after")).code == 201
            assert "There is room for" in plane.said()
        plane.kill()
        plane.start()
        with Wire(plane.port, plane.admin()) as again:
            assert sorted(names(again)) == sorted([*made[:2], "large-after"])


def test_a_server_starts_on_a_full_disk_so_that_objects_can_be_deleted(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "48m") as disk, Plane(disk / "plane", log=tmp_path) as plane:
        with Wire(plane.port, plane.admin()) as wire:
            assert wire.send("POST", MAPS, config_map("large-0")).code == 201
        fill(disk)
        plane.kill()
        plane.start()
        with Wire(plane.port, plane.admin()) as wire:
            assert b"[-]store failed" in until_code(wire, "/readyz", 500).body
            assert wire.ask("DELETE", f"{MAPS}/large-0").code == 200
            assert wire.send("POST", MAPS, config_map("large-1")).code == FULL
