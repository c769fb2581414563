"""Volumes as directories."""

import stat
from pathlib import Path
from typing import Any

import pytest

from situate.agent.environment import ContainerConfigError, EnvironmentSources
from situate.agent.volumes import VolumeOwner, prepare_volumes, variable_of, volume_references

AROUND = EnvironmentSources(
    "10.0.0.1",
    {},
    {("ConfigMap", "conf"): {"data": {"a": "1", "b": "2"}}, ("Secret", "keys"): {"data": {"pass": "b3Blbg=="}}},
    {},
)


def pod(*volumes: dict[str, Any]) -> dict[str, Any]:
    meta = {"name": "p", "namespace": "default", "uid": "u-1", "labels": {"app": "web"}}
    return {"metadata": meta, "spec": {"containers": [{"name": "c"}], "volumes": list(volumes)}}


def files(root: Path) -> dict[str, str]:
    return {str(one.relative_to(root)): one.read_text() for one in root.rglob("*") if one.is_file()}


@pytest.mark.parametrize(
    "source, expected",
    [
        pytest.param({"configMap": {"name": "conf"}}, {"a": "1", "b": "2"}, id="a config map"),
        pytest.param(
            {"configMap": {"name": "conf", "items": [{"key": "a", "path": "deep/x"}]}}, {"deep/x": "1"}, id="some keys"
        ),
        pytest.param({"secret": {"secretName": "keys"}}, {"pass": "open"}, id="a secret"),
        pytest.param({"secret": {"secretName": "no", "optional": True}}, {}, id="a secret that may be missing"),
        pytest.param(
            {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
            {"labels": 'app="web"'},
            id="fields of the pod",
        ),
        pytest.param(
            {"projected": {"sources": [{"configMap": {"name": "conf"}}, {"secret": {"name": "keys"}}]}},
            {"a": "1", "b": "2", "pass": "open"},
            id="several in one",
        ),
        pytest.param({"emptyDir": {}}, {}, id="an empty directory"),
    ],
)
def test_what_is_in_a_volume(source: dict[str, Any], expected: dict[str, str], tmp_path: Path) -> None:
    paths = prepare_volumes(pod({"name": "my-data", **source}), tmp_path, AROUND)
    assert paths == {"SITUATE_VOLUME_MY_DATA": str(tmp_path / "my-data")}
    assert files(tmp_path / "my-data") == expected


def test_what_a_pod_wrote_is_there_when_it_begins_again(tmp_path: Path) -> None:
    given = pod({"name": "data", "emptyDir": {}})
    prepare_volumes(given, tmp_path, AROUND)
    (tmp_path / "data" / "kept").touch()
    prepare_volumes(given, tmp_path, AROUND)
    assert (tmp_path / "data" / "kept").exists()


def test_the_mode_of_files(tmp_path: Path) -> None:
    prepare_volumes(pod({"name": "v", "secret": {"secretName": "keys", "defaultMode": 0o400}}), tmp_path, AROUND)
    assert (tmp_path / "v" / "pass").stat().st_mode & 0o777 == 0o400


def test_a_host_path_is_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "made"
    volume = {"name": "v", "hostPath": {"path": str(path), "type": "DirectoryOrCreate"}}
    assert prepare_volumes(pod(volume), tmp_path / "root", AROUND) == {variable_of("v"): str(path)}
    assert path.is_dir()


@pytest.mark.parametrize(
    "source, message",
    [
        pytest.param(
            {"persistentVolumeClaim": {"claimName": "x"}},
            "does not support volumes of type persistentVolumeClaim",
            id="a claim",
        ),
        pytest.param(
            {"hostPath": {"path": "/nowhere/at/all", "type": "Directory"}}, "is not a directory", id="no directory"
        ),
        pytest.param({"configMap": {"name": "no"}}, 'configmap "no" not found', id="no config map"),
        pytest.param(
            {"configMap": {"name": "conf", "items": [{"key": "z", "path": "z"}]}}, "non-existent", id="no such key"
        ),
        pytest.param(
            {"configMap": {"name": "conf", "items": [{"key": "a", "path": "../../out"}]}},
            "outside its volume",
            id="a path that leads out",
        ),
        pytest.param(
            {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}, "serviceAccountToken", id="a token"
        ),
    ],
)
def test_what_cannot_be_had_is_said(source: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ContainerConfigError, match=message):
        prepare_volumes(pod({"name": "v", **source}), tmp_path, AROUND)
    assert not (tmp_path / "out").exists()


def test_what_has_to_be_read_first() -> None:
    given = pod(
        {"name": "a", "configMap": {"name": "conf"}},
        {"name": "b", "secret": {"secretName": "keys"}},
        {"name": "c", "projected": {"sources": [{"secret": {"name": "more"}}]}},
        {"name": "d", "emptyDir": {}},
    )
    assert [(one.kind, one.name) for one in volume_references(given)] == [
        ("ConfigMap", "conf"),
        ("Secret", "keys"),
        ("Secret", "more"),
    ]


def test_a_directory_goes_to_the_containers_user_after_all_that_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever owns a directory can put a symbolic link into it: the agent may be root, and must not follow that."""
    secret = tmp_path / "secret"
    secret.mkdir(mode=0o700)
    give = VolumeOwner.give

    def give_to_an_attacker(self: VolumeOwner, path: Path, mode: int) -> None:
        give(self, path, mode)
        for inner in list(path.iterdir()) if path.is_dir() else ():
            if inner.is_dir():
                inner.rename(tmp_path / "away")
                inner.symlink_to(secret)

    monkeypatch.setattr(VolumeOwner, "give", give_to_an_attacker)
    items = {"name": "conf", "items": [{"key": "a", "path": "deep/x"}]}
    prepare_volumes(pod({"name": "data", "configMap": items}), tmp_path / "volumes", AROUND)
    assert stat.S_IMODE(secret.stat().st_mode) == 0o700
