"""One server for all tests that only send it nonsense."""

from collections.abc import Iterator

import pytest

from server.faults.corpus.objects import PRESENT
from server.faults.process import Plane
from server.faults.wire import Wire


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    with Plane(tmp_path_factory.mktemp("faults") / "plane") as plane:
        with Wire(plane.port, plane.admin()) as wire:
            for path, obj in PRESENT:
                answer = wire.send("POST", path, obj)
                assert answer.code == 201, answer.body
        yield plane


@pytest.fixture
def wire(plane: Plane) -> Iterator[Wire]:
    with Wire(plane.port, plane.admin()) as wire:
        yield wire
