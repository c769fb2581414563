"""A server finds its leases again when it is started again, and no two servers have the same name."""

import shutil
import subprocess
import sys
from pathlib import Path

from situate.cli.control_plane.lease_identity import lease_identity

ASK = """
import pathlib, sys
from situate.cli.control_plane.lease_identity import lease_identity
print(lease_identity(pathlib.Path(sys.argv[1])))
"""


def of_another_process(directory: Path) -> str:
    return subprocess.run([sys.executable, "-c", ASK, directory], capture_output=True, check=True, text=True).stdout


def test_a_server_that_is_started_again_has_the_same_name(tmp_path: Path) -> None:
    assert of_another_process(tmp_path) == of_another_process(tmp_path)


def test_while_a_server_runs_another_on_its_directory_has_another_name(tmp_path: Path) -> None:
    own = lease_identity(tmp_path)
    assert lease_identity(tmp_path) == own
    others = {of_another_process(tmp_path).strip() for _ in range(2)}
    assert len(others | {own}) == 3


def test_a_copy_of_a_directory_has_another_name(tmp_path: Path) -> None:
    first, copy = tmp_path / "first", tmp_path / "copy"
    first.mkdir()
    own = of_another_process(first)
    shutil.copytree(first, copy)
    assert of_another_process(copy) != own


def test_a_name_from_another_machine_or_a_broken_file_is_not_used(tmp_path: Path) -> None:
    for text in ("elsewhere_1234 " + str(tmp_path.resolve() / "lease-identity"), "nonsense", ""):
        (tmp_path / "lease-identity").write_text(text)
        found = of_another_process(tmp_path)
        assert found != text.split(" ")[0]
        assert of_another_process(tmp_path) == found
