"""Volumes as directories."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from situate.agent.environment import ContainerConfigError, EnvironmentSources, TokenReference
from situate.agent.volumes import (
    VolumeOwner,
    check_mounts,
    closed_parent,
    prepare_volumes,
    token_directory,
    token_references,
    variable_of,
    volume_references,
)

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


def test_a_volume_has_the_token_of_the_account_and_is_asked_for_once(tmp_path: Path) -> None:
    source = {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}}
    one = pod({"name": "access", "projected": {"sources": [source]}})
    (wanted,) = token_references(one, tmp_path)
    assert wanted == TokenReference("", 3607)
    volumes = prepare_volumes(one, tmp_path, replace(AROUND, tokens={wanted: "secret"}))
    assert files(tmp_path / "access") == {"token": "secret"}
    assert list(token_references(one, tmp_path)) == []
    mount = {"name": "access", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
    assert token_directory({"volumeMounts": [mount]}, volumes) == {"SITUATE_SERVICE_ACCOUNT": str(tmp_path / "access")}
    assert token_directory({}, volumes) == {}


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
            {"nfs": {"server": "s", "path": "/"}},
            "does not support volumes of type nfs",
            id="a volume on the network",
        ),
        pytest.param(
            {"hostPath": {"path": "/proc/none/at/all", "type": "Directory"}}, "is not a directory", id="no directory"
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
            {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}, "token is missing", id="a token"
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


AS_ROOT = pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")


@pytest.fixture
def homes() -> Iterator[Path]:
    """A directory that everybody may enter, unlike those of pytest."""
    made = Path(tempfile.mkdtemp(prefix="situate-test-"))
    made.chmod(0o711)
    yield made
    shutil.rmtree(made)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_an_empty_directory_is_open_to_all_and_so_is_the_way_to_it(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        made = prepare_volumes(pod({"name": "data", "emptyDir": {}}), tmp_path / "home" / "volumes", AROUND)
    finally:
        os.umask(before)
    path = Path(made[variable_of("data")])
    assert (mode_of(path), mode_of(path.parent), mode_of(path.parent.parent)) == (0o777, 0o711, 0o711)


@AS_ROOT
def test_volumes_go_to_the_user_and_to_the_group_of_the_pod(homes: Path) -> None:
    given = pod({"name": "data", "emptyDir": {}}, {"name": "conf", "configMap": {"name": "conf", "defaultMode": 0o600}})
    root = homes / "volumes"
    prepare_volumes(given, root, AROUND, VolumeOwner(user=54_321, group=54_322, fs_group=54_323))
    found = {name: (root / name).stat() for name in ("data", "conf", "conf/a")}
    assert {(one.st_uid, one.st_gid) for one in found.values()} == {(54_321, 54_323)}
    modes = {name: oct(stat.S_IMODE(one.st_mode)) for name, one in found.items()}
    assert modes == {"data": "0o2777", "conf": "0o2775", "conf/a": "0o640"}
    prepare_volumes(given, homes / "other", AROUND, VolumeOwner(user=54_321, group=54_322))
    owned = (homes / "other" / "data").stat()
    assert (owned.st_uid, owned.st_gid, stat.S_IMODE(owned.st_mode)) == (54_321, 54_322, 0o777)


def test_without_an_owner_volumes_are_the_agent_s(tmp_path: Path) -> None:
    prepare_volumes(pod({"name": "data", "emptyDir": {}}), tmp_path, AROUND)
    assert (tmp_path / "data").stat().st_uid == os.getuid()


def test_the_first_directory_that_a_user_may_not_enter(homes: Path) -> None:
    outer, inner = homes / "outer", homes / "outer" / "inner"
    inner.mkdir(parents=True)
    outer.chmod(0o700)
    inner.chmod(0o700)
    stranger = os.getuid() + 1
    assert closed_parent(inner / "volumes", stranger) == outer
    assert closed_parent(inner / "volumes", os.getuid()) is None, "it is its own"
    outer.chmod(0o711)
    assert closed_parent(inner / "volumes", stranger) == inner
    assert closed_parent(inner, stranger) is None, "a path itself is not above it"
    assert closed_parent(outer / "none" / "volumes", stranger) is None, "what does not exist can be created"


@AS_ROOT
def test_volumes_below_a_closed_directory_are_refused_but_a_host_path_is_where_it_is(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    owner = VolumeOwner(user=54_321, group=54_321)
    with pytest.raises(ContainerConfigError, match="volume data: user 54321 may not enter") as error:
        prepare_volumes(pod({"name": "data", "emptyDir": {}}), closed / "volumes", AROUND, owner)
    assert error.value.reason == "FailedMount"
    host = pod({"name": "host", "hostPath": {"path": "/proc"}})
    assert prepare_volumes(host, closed / "volumes", AROUND, owner) == {variable_of("host"): "/proc"}


@pytest.mark.parametrize("field", ["mountPath", "subPath", "subPathExpr"])
def test_a_mount_whose_path_no_system_can_have_is_refused(field: str) -> None:
    check_mounts({"volumeMounts": [{"name": "v", "mountPath": "/a", "subPath": "b"}]})
    check_mounts({})
    with pytest.raises(ContainerConfigError, match=f"volume v: {field} contains a NUL character") as error:
        check_mounts({"volumeMounts": [{"name": "ok", "mountPath": "/a"}, {"name": "v", field: "a\0b"}]})
    assert error.value.reason == "FailedMount"


def test_a_host_path_is_created_if_the_pod_says_so(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir(mode=0o700)
    for path, kind in ((tmp_path / "a" / "b", "DirectoryOrCreate"), (there, "DirectoryOrCreate")):
        prepare_volumes(pod({"name": "v", "hostPath": {"path": str(path), "type": kind}}), tmp_path / "r", AROUND)
        assert path.is_dir()
    assert mode_of(there) == 0o700, "it stays as it is"
    file = tmp_path / "file"
    source = {"path": str(file), "type": "FileOrCreate"}
    prepare_volumes(pod({"name": "v", "hostPath": source}), tmp_path / "r", AROUND)
    assert file.read_bytes() == b""
    old = file.stat().st_mtime_ns
    prepare_volumes(pod({"name": "v", "hostPath": source}), tmp_path / "r", AROUND)
    assert file.stat().st_mtime_ns == old


@pytest.mark.parametrize(
    "kind, path, message",
    [
        pytest.param("File", ".", "is not a file", id="a directory is no file"),
        pytest.param("Directory", "file", "is not a directory", id="a file is no directory"),
        pytest.param("FileOrCreate", ".", "is not a fileorcreate", id="nor can it be created as one"),
        pytest.param("DirectoryOrCreate", "file", "volume v: .*File exists", id="nor the other way round"),
        pytest.param("", "fi\0le", "its hostPath contains a NUL character", id="a path that no system can have"),
        pytest.param("DirectoryOrCreate", "file/below", "volume v: .*Not a directory", id="below a file"),
    ],
)
def test_a_host_path_must_be_what_the_pod_says(kind: str, path: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    source = {"path": f"{tmp_path}/{path}", "type": kind}
    with pytest.raises(ContainerConfigError, match=message) as error:
        prepare_volumes(pod({"name": "v", "hostPath": source}), tmp_path / "r", AROUND)
    assert error.value.reason == "FailedMount"


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ContainerConfigError, match=f"volume v: {tmp_path}/file: File exists"):
        prepare_volumes(pod({"name": "v", "emptyDir": {}}), tmp_path / "file" / "volumes", AROUND)


def test_the_modes_of_projected_files_and_of_items(tmp_path: Path) -> None:
    items = [{"key": "a", "path": "a", "mode": 0o400}, {"key": "b", "path": "b"}]
    labels = {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}
    sources = [
        {"configMap": {"name": "conf", "items": items}},
        {"downwardAPI": {"items": [labels, {**labels, "path": "own", "mode": 0o444}]}},
    ]
    given = pod(
        {"name": "v", "projected": {"sources": sources, "defaultMode": 0o600}},
        {"name": "w", "downwardAPI": {"items": [labels], "defaultMode": 0o640}},
        {"name": "x", "secret": {"secretName": "keys"}},
    )
    prepare_volumes(given, tmp_path, AROUND)
    modes = {str(one.relative_to(tmp_path)): oct(mode_of(one)) for one in tmp_path.rglob("*") if one.is_file()}
    own = {"v/a": "0o400", "v/b": "0o600", "v/labels": "0o600", "v/own": "0o444"}
    assert modes == {**own, "w/labels": "0o640", "x/pass": "0o644"}


def test_a_key_that_may_be_missing_is_left_out(tmp_path: Path) -> None:
    items = [{"key": "a", "path": "a"}, {"key": "z", "path": "z"}]
    prepare_volumes(
        pod({"name": "v", "configMap": {"name": "conf", "items": items, "optional": True}}), tmp_path, AROUND
    )
    assert files(tmp_path / "v") == {"a": "1"}


def test_a_resource_is_that_of_the_first_container(tmp_path: Path) -> None:
    item = {"path": "cpu", "resourceFieldRef": {"resource": "limits.cpu"}}
    given = pod({"name": "v", "downwardAPI": {"items": [item]}})
    given["spec"]["containers"] = [
        {"name": name, "resources": {"limits": {"cpu": cpu}}} for name, cpu in (("c", "3"), ("d", "5"))
    ]
    prepare_volumes(given, tmp_path, AROUND)
    assert files(tmp_path / "v") == {"cpu": "3"}


def test_what_half_a_start_left_behind_is_removed(tmp_path: Path) -> None:
    left = tmp_path / ".v.new"
    left.mkdir()
    (left / "old").touch()
    prepare_volumes(pod({"name": "v", "configMap": {"name": "conf"}}), tmp_path, AROUND)
    assert files(tmp_path) == {"v/a": "1", "v/b": "2"}
