"""Logs of an agent in another process: the server asks over TLS, and each side knows the other."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from server.kubelet.test_logs import Runtime
from server.placing.world import World, tell
from situate.agent.control_plane_local import LocalControlPlane
from situate.agent.host import facts, node_object, pressure
from situate.agent.kubelet_server import Endpoint, serve_kubelet
from situate.server.errors import StatusError
from situate.server.http.ports import LogOptions
from situate.server.identity.pki.authority import Authority, open_authority
from situate.server.kubelet.connector import CLIENT_NAME, FINGERPRINT, KubeletConnector, KubeletTls
from situate.server.kubelet.logs import KubeletLogs

HERE = "127.0.0.1"
POD = {"metadata": {"name": "p", "namespace": "default", "uid": "u"}}


def shown(tmp_path: Path, authority: Authority, user: str | None) -> KubeletTls:
    """A client that shows a certificate in this name, or none."""
    tls = KubeletTls()
    if user is not None:
        made = authority.client(user, (), datetime.now(UTC))
        file = tmp_path / f"{user.replace(':', '-')}.pem"
        file.write_bytes(made.certificate + made.key)
        tls.load(str(file), authority.bundle.decode())
    return tls


def der(authority: Authority) -> bytes:
    return x509.load_pem_x509_certificate(authority.pem).public_bytes(Encoding.DER)


def asked(
    tmp_path: Path, *, user: str | None = CLIENT_NAME, by: str = "pki", pin: str = "", options: LogOptions | None = None
) -> str:
    now, found = datetime.now(UTC), b""
    own, asking = open_authority(tmp_path / "pki", now), open_authority(tmp_path / by, now)

    async def story(world: World) -> None:
        nonlocal found
        runtime: Any = Runtime(tmp_path, 2)
        async with serve_kubelet(runtime, lambda: [POD], tmp_path, HERE, [der(own)]) as endpoint:
            said = Endpoint(endpoint.port, pin or endpoint.fingerprint)
            node = node_object("n1", facts(tmp_path), pressure(tmp_path), 0, {}, {}, endpoint=said)
            node["status"]["addresses"] = [{"type": "InternalIP", "address": HERE}]
            await LocalControlPlane(world.registry).register_node(node)
            await world.pod(nodeName="n1")
            logs = KubeletLogs(world.registry, KubeletConnector(world.registry, shown(tmp_path, asking, user)))
            async for piece in await logs.open("default", "p", "c", options or LogOptions()):
                found += piece

    tell(story)
    return found.decode()


def test_the_server_is_told(tmp_path: Path) -> None:
    assert asked(tmp_path) == "run 1\n"


def test_options_come_along(tmp_path: Path) -> None:
    assert asked(tmp_path, options=LogOptions(previous=True, timestamps=True)).endswith("Z run 0\n")


@pytest.mark.parametrize(
    "how, why",
    [
        pytest.param({"user": "root"}, "only the control plane may ask", id="another user of the same authority"),
        pytest.param({"user": None}, "did not send the log", id="who shows no certificate"),
        pytest.param({"by": "other"}, "did not send the log", id="one that another authority has signed"),
    ],
)
def test_nobody_else_is(how: dict[str, Any], why: str, tmp_path: Path) -> None:
    with pytest.raises(StatusError, match=why):
        asked(tmp_path, **how)


def test_an_agent_that_shows_another_certificate_than_its_node_says_is_not_believed(tmp_path: Path) -> None:
    with pytest.raises(StatusError, match="shows another certificate than its Node names"):
        asked(tmp_path, pin="00" * 32)


def test_a_node_that_says_nonsense_is_said_to(tmp_path: Path) -> None:
    with pytest.raises(StatusError, match=f"annotation {FINGERPRINT} of node n1 is not a SHA-256"):
        asked(tmp_path, pin="xyz")


def test_the_key_is_the_agents_own(tmp_path: Path) -> None:
    asked(tmp_path)
    assert (tmp_path / "serving.pem").stat().st_mode & 0o777 == 0o600
