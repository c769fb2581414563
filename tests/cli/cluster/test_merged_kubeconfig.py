"""The context of a local cluster in kubectl's own kubeconfig: added, replaced and removed, and nobody else's."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from situate.cli.cluster.merged_kubeconfig import add_context, remove_context
from situate.server.identity.pki.kubeconfig import kubeconfig_text
from situate.wire.errors import InputError

OTHER: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Config",
    "preferences": {"colors": True},
    "clusters": [{"name": "prod", "cluster": {"server": "https://prod:6443"}}],
    "users": [{"name": "me", "user": {"token": "secret"}}],
    "contexts": [{"name": "prod", "context": {"cluster": "prod", "user": "me", "namespace": "shop"}}],
    "current-context": "prod",
}


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    (tmp_path / "cluster").mkdir()
    (tmp_path / "cluster" / "kubeconfig").write_text(kubeconfig_text({"server": "https://here:1"}, {"token": "t"}))
    return tmp_path / ".kube" / "config"


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def given(path: Path, content: Any = OTHER) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(content))


def test_a_context_is_added_beside_the_others_and_the_current_one_stays(config: Path) -> None:
    given(config)
    assert add_context("situate", config.parents[1] / "cluster", switch=False) == config
    found = read(config)
    assert [one["name"] for one in found["contexts"]] == ["prod", "situate"]
    assert found["current-context"] == "prod"
    assert found["preferences"] == OTHER["preferences"]
    assert found["clusters"][0] == OTHER["clusters"][0]
    assert found["clusters"][1]["cluster"]["server"] == "https://here:1"
    assert stat.S_IMODE(config.stat().st_mode) == 0o600
    assert sorted(path.name for path in config.parent.iterdir()) == ["config"]


def test_it_becomes_the_current_one_if_asked_or_if_there_is_none(config: Path) -> None:
    directory = config.parents[1] / "cluster"
    add_context("situate", directory, switch=False)
    assert read(config)["current-context"] == "situate"
    given(config)
    add_context("situate", directory, switch=True)
    assert read(config)["current-context"] == "situate"


def test_what_was_added_is_removed_whole(config: Path) -> None:
    given(config)
    directory = config.parents[1] / "cluster"
    add_context("situate", directory, switch=True)
    add_context("situate", directory, switch=True)
    assert remove_context("situate", directory) == config
    assert read(config) == {**OTHER, "current-context": ""}
    assert remove_context("situate", directory) is None


def test_the_context_of_another_cluster_is_neither_replaced_nor_removed(config: Path) -> None:
    theirs = {**OTHER, "contexts": [{"name": "situate", "context": {"cluster": "prod", "user": "me"}}]}
    given(config, theirs)
    with pytest.raises(
        click.ClickException, match="has a context situate already, for another cluster; nothing was changed"
    ):
        add_context("situate", config.parents[1] / "cluster", switch=True)
    assert remove_context("situate", config.parents[1] / "cluster") is None
    assert read(config) == theirs


def test_only_the_cluster_that_added_it_removes_it(config: Path) -> None:
    add_context("situate", config.parents[1] / "cluster", switch=False)
    assert remove_context("situate", config.parents[1] / "other") is None
    assert [one["name"] for one in read(config)["contexts"]] == ["situate"]


def test_of_several_files_the_first_that_exists_is_written(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    second = config.parents[1] / "second"
    given(second)
    monkeypatch.setenv("KUBECONFIG", f"{config.parents[1] / 'first'}:{second}")
    assert add_context("situate", config.parents[1] / "cluster", switch=False) == second


def test_the_clusters_own_kubeconfig_needs_nothing(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = config.parents[1] / "cluster" / "kubeconfig"
    monkeypatch.setenv("KUBECONFIG", str(own))
    before = own.read_bytes()
    assert add_context("situate", own.parent, switch=True) is None
    assert own.read_bytes() == before


def test_a_link_is_followed_and_not_replaced(config: Path) -> None:
    real = config.parents[1] / "dotfiles"
    given(real)
    config.parent.mkdir()
    config.symlink_to(real)
    add_context("situate", config.parents[1] / "cluster", switch=False)
    assert config.is_symlink()
    assert [one["name"] for one in read(real)["contexts"]] == ["prod", "situate"]


@pytest.mark.parametrize("text", ["[]", "contexts: 3", "{"])
def test_what_is_no_kubeconfig_is_left_as_it_is(config: Path, text: str) -> None:
    config.parent.mkdir()
    config.write_text(text)
    with pytest.raises((click.ClickException, InputError)):
        add_context("situate", config.parents[1] / "cluster", switch=False)
    assert config.read_text() == text


def test_a_locked_file_is_left_as_it_is(config: Path) -> None:
    given(config)
    config.with_name("config.lock").touch()
    with pytest.raises(click.ClickException, match="is locked by another program"):
        add_context("situate", config.parents[1] / "cluster", switch=False)
    assert read(config) == OTHER
