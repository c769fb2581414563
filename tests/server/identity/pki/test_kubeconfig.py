import base64
import stat
from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from server.identity.clock import Clock
from situate.server.identity.pki.authority import Authority, open_authority
from situate.server.identity.pki.kubeconfig import cluster_info, ensure_kubeconfig, kubeconfig_text
from situate.server.identity.secret_files import IdentityError

URL = "https://127.0.0.1:6443"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def authority(tmp_path: Path, clock: Clock) -> Authority:
    return open_authority(tmp_path / "pki", clock.now)


def ensure(path: Path, authority: Authority, clock: Clock, url: str = URL) -> bool:
    return ensure_kubeconfig(path, authority, url, "admin", ["system:masters"], clock.now)


def test_everything_is_in_it_and_only_its_owner_reads_it(tmp_path: Path, authority: Authority, clock: Clock) -> None:
    path = tmp_path / "somewhere" / "kubeconfig"
    assert ensure(path, authority, clock)
    content = yaml.safe_load(path.read_text())
    assert content["clusters"][0]["cluster"]["server"] == URL
    assert base64.b64decode(content["clusters"][0]["cluster"]["certificate-authority-data"]) == authority.pem
    assert content["current-context"] == content["contexts"][0]["name"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in path.parent.iterdir()] == ["kubeconfig"]


def test_it_is_written_again_only_when_it_must_be(tmp_path: Path, authority: Authority, clock: Clock) -> None:
    path = tmp_path / "kubeconfig"
    ensure(path, authority, clock)
    assert not ensure(path, authority, clock)
    assert ensure(path, authority, clock, "https://127.0.0.1:7443")
    clock.turn(days=250)
    assert ensure(path, authority, clock, "https://127.0.0.1:7443")
    other = open_authority(tmp_path / "other", clock.now - timedelta(days=1))
    assert ensure(path, other, clock, "https://127.0.0.1:7443")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "{",
        "apiVersion: v1\nclusters: []\n",
        "clusters:\n- name: kind\n  cluster: {server: x}\nusers: []\n",
        "clusters:\n- name: situate\n  cluster: {server: x}\nusers:\n- user: {client-certificate-data: '!!'}\n",
    ],
)
def test_a_file_that_is_somebody_elses_or_damaged_is_left_alone(
    tmp_path: Path, authority: Authority, clock: Clock, text: str
) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(IdentityError, match="move it away") as raised:
        ensure(path, authority, clock)
    assert "\n" not in str(raised.value)
    assert path.read_text() == text


def test_the_kubeconfig_of_another_cluster_is_told_from_a_damaged_one(
    tmp_path: Path, authority: Authority, clock: Clock
) -> None:
    path = tmp_path / "kubeconfig"
    for text, why in (
        ("clusters:\n- name: kind\n  cluster: {server: x}\nusers: []\n", "is the kubeconfig of another cluster"),
        ("clusters:\n- name: situate\n  cluster: {server: x}\nusers: []\n", "is damaged: the server did not write it"),
        ("{", "is damaged: it is not YAML"),
    ):
        path.write_text(text)
        path.chmod(0o600)
        with pytest.raises(IdentityError, match=why):
            ensure(path, authority, clock)


def test_a_context_has_a_namespace_if_it_is_given_one() -> None:
    for namespace, expected in (("", {}), ("shop", {"namespace": "shop"})):
        content = yaml.safe_load(kubeconfig_text({"server": URL}, {"token": "x"}, "jane", namespace))
        assert content["contexts"] == [
            {"name": "situate", "context": {"cluster": "situate", "user": "jane"} | expected}
        ]
        assert list(content) == ["apiVersion", "kind", "clusters", "contexts", "current-context", "users"]
    assert list(yaml.safe_load(cluster_info("ca"))) == ["apiVersion", "kind", "clusters"]
