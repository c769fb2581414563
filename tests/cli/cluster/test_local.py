"""Clusters of this machine by name, and which cluster a command talks to."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner

from situate.cli import main
from situate.cli.cluster.connection import access_to
from situate.cli.cluster.local import context_name, find_directory, local_clusters, named_directory, require_running
from situate.cli.control_plane.state import write_state
from situate.server.identity.pki.kubeconfig import kubeconfig_text
from situate.wire.errors import InputError

LOCAL = "http://127.0.0.1:1"
"""Without TLS, so that the test needs no authority."""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with nothing on it."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def kubeconfig(path: Path, server: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(kubeconfig_text({"server": server}, {"token": "t"}))


def running(directory: Path, server: str = LOCAL) -> Path:
    """A cluster whose server is this very process."""
    kubeconfig(directory / "kubeconfig", server)
    write_state(directory, server)
    return directory


def test_a_cluster_that_kubectl_would_find_comes_before_any_of_this_machine(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running(Path(".situate"))
    assert access_to(None, None).server == LOCAL
    kubeconfig(home / ".kube" / "config", "http://home:1")
    assert access_to(None, None).server == "http://home:1"
    kubeconfig(home / "listed", "http://listed:1")
    monkeypatch.setenv("KUBECONFIG", str(home / "listed"))
    assert access_to(None, None).server == "http://listed:1"
    assert access_to(".situate/kubeconfig", None).server == LOCAL


def test_a_variable_that_names_a_missing_file_is_no_reason_to_take_another_cluster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    running(Path(".situate"))
    monkeypatch.setenv("KUBECONFIG", "/no/such")
    with pytest.raises(InputError, match="KUBECONFIG names /no/such, which does not exist"):
        access_to(None, None)


def test_of_several_clusters_none_is_guessed() -> None:
    running(Path(".situate"))
    running(named_directory("dev"))
    with pytest.raises(InputError, match=r"several clusters are up: choose one of --cluster .situate, --cluster dev"):
        access_to(None, None)


def test_a_stopped_cluster_is_not_found() -> None:
    kubeconfig(Path(".situate") / "kubeconfig", LOCAL)
    with pytest.raises(InputError, match="or start a cluster with `situate up`"):
        access_to(None, None)


def test_names_and_directories(home: Path) -> None:
    assert find_directory("dev") == home / "data" / "situate" / "clusters" / "dev"
    assert find_directory("./dev") == Path("dev")
    assert find_directory(".situate") == Path(".situate")
    assert context_name(find_directory("dev")) == "situate-dev"
    assert context_name(Path(".situate")) == "situate"


@pytest.mark.parametrize("name", ["", "Dev", "a b", "-a", "a-", "x" * 41, "dev-pods"])
def test_what_is_not_a_name_is_refused(name: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a name"):
        named_directory(name)


def test_the_list_has_the_cluster_of_this_directory_and_those_with_a_name() -> None:
    running(named_directory("dev"))
    kubeconfig(named_directory("old") / "kubeconfig", LOCAL)
    named_directory("dev").with_name("dev-pods").mkdir()
    kubeconfig(Path(".situate") / "kubeconfig", LOCAL)
    assert [(one.name, one.state is not None) for one in local_clusters()] == [
        ("", False),
        ("dev", True),
        ("old", False),
    ]
    shown = CliRunner().invoke(main, ["clusters"])
    assert [line.split()[:2] for line in shown.stdout.splitlines()] == [
        ["NAME", "STATE"],
        ["<none>", "stopped"],
        ["dev", "running"],
        ["old", "stopped"],
    ]
    values = json.loads(CliRunner().invoke(main, ["clusters", "-o", "json"]).stdout)
    assert [(one["name"], one["context"], one["pid"]) for one in values] == [
        ("", "situate", None),
        ("dev", "situate-dev", os.getpid()),
        ("old", "situate-old", None),
    ]


def test_a_machine_without_clusters_says_how_to_start_one() -> None:
    shown = CliRunner().invoke(main, ["clusters"])
    assert (shown.exit_code, shown.stdout) == (0, "")
    assert shown.stderr == "No clusters found. `situate up` starts one.\n"


def test_a_cluster_that_is_not_up_says_how_to_start_it() -> None:
    with pytest.raises(click.ClickException, match="cluster dev is not up; `situate up --name dev` starts it"):
        require_running(named_directory("dev"))
    with pytest.raises(click.ClickException, match="no cluster is up in other; `situate up --dir other` starts it"):
        require_running(Path("other"))


def test_two_options_that_name_a_cluster_are_refused() -> None:
    done = CliRunner().invoke(main, ["get", "pods", "--cluster", "dev", "--kubeconfig", "x"])
    assert done.exit_code == 2
    assert "--cluster and --kubeconfig both name a cluster" in done.stderr
    done = CliRunner().invoke(main, ["down", "--name", "dev", "--dir", "x"])
    assert done.exit_code == 2
    assert "both name a cluster" in done.stderr


def test_no_file_of_another_program_is_read_as_ours(home: Path) -> None:
    kubeconfig(home / ".kube" / "config", "http://home:1")
    assert yaml.safe_load((home / ".kube" / "config").read_text())["current-context"] == "situate"
    assert local_clusters() == []
