import resource

import pytest

from situate.server.http.descriptors import fit_descriptors
from situate.server.http.settings import Limits


class Machine:
    """A process with these limits, which may raise the hard one if it is privileged."""

    def __init__(self, soft: int, hard: int, *, privileged: bool = False) -> None:
        self.limits = (soft, hard)
        self.privileged = privileged

    def getrlimit(self, _: int) -> tuple[int, int]:
        return self.limits

    def setrlimit(self, _: int, wanted: tuple[int, int]) -> None:
        soft, hard = wanted
        if soft > hard or (hard > self.limits[1] and not self.privileged):
            raise ValueError("not allowed to raise maximum limit")
        self.limits = wanted


@pytest.mark.parametrize(
    "machine, files, connections",
    [
        pytest.param(Machine(1_024, 524_288), 11_000, 10_000, id="the soft limit is raised"),
        pytest.param(Machine(20_000, 20_000), 20_000, 10_000, id="enough is left alone"),
        pytest.param(Machine(-1, -1), -1, 10_000, id="no limit"),
        pytest.param(Machine(1_024, 4_096, privileged=True), 11_000, 10_000, id="root raises the hard limit, too"),
        pytest.param(Machine(1_024, 4_096), 4_096, 3_096, id="fewer connections if it cannot be raised"),
        pytest.param(Machine(256, 256), 256, 128, id="a few connections at least"),
    ],
)
def test_the_limit_of_open_files_fits_the_connections(
    machine: Machine, files: int, connections: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(resource, "getrlimit", machine.getrlimit)
    monkeypatch.setattr(resource, "setrlimit", machine.setrlimit)
    assert fit_descriptors(Limits()).connections == connections
    assert machine.limits[0] == files
    assert len(caplog.records) == (connections < 10_000)
