"""How a node's kubelet is found, and whom the server takes for it."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agent.test_kubelet_server import shown
from server.placing.world import World, tell
from situate.server.errors import StatusError
from situate.server.identity.pki.authority import open_authority
from situate.server.kubelet.connector import CLIENT_NAME, NODES, KubeletConnector, address_of
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import SYSTEM, Object, Target

HERE, ELSEWHERE = "127.0.0.1", "127.0.0.2"


@asynccontextmanager
async def listening(tmp_path: Path, address: str) -> AsyncIterator[int]:
    """A kubelet whose certificate an authority has signed for 127.0.0.1."""
    authority = open_authority(tmp_path / "kubelet", datetime.now(UTC))
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own.load_cert_chain(authority.server_certificate([HERE], datetime.now(UTC)))

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(hear, address, 0, ssl=own)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def say(world: World, port: int, address: str = HERE, **more: Any) -> None:
    def change(obj: Object, _held: StoredObject) -> Object:
        where = {
            "addresses": [{"type": "InternalIP", "address": address}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        }
        return {**obj, "status": {**obj["status"], **where, **more}}

    await world.registry.modify(Target(NODES, "", "n1"), change, SYSTEM)


def dial(tmp_path: Path, address: str = HERE, *, insecure: bool = False, other: bool = False) -> None:
    """Connect to a kubelet at this address with a certificate for 127.0.0.1, ours or not."""

    async def story(world: World) -> None:
        await world.node()
        async with listening(tmp_path, address) as port:
            await say(world, port, address)
            trusted = open_authority(tmp_path / ("own" if other else "kubelet"), datetime.now(UTC))
            nodes = KubeletConnector(world.registry, shown(tmp_path, trusted, CLIENT_NAME), insecure=insecure)
            connection = await nodes.connect("n1", "ask")
            assert connection.host == f"{address}:{port}"
            await connection.close()

    tell(story)


def test_a_kubelet_with_a_certificate_of_the_cluster_for_its_address(tmp_path: Path) -> None:
    dial(tmp_path)


@pytest.mark.parametrize("how", [{"address": ELSEWHERE}, {"other": True}], ids=["another address", "another authority"])
def test_any_other_certificate_is_refused_unless_the_server_is_told_otherwise(
    how: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(StatusError, match="set serverTLSBootstrap: true in the kubelet's configuration"):
        dial(tmp_path, **how)
    dial(tmp_path, **how, insecure=True)


def test_what_is_said_of_nodes_that_cannot_be_asked(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        await world.node()
        trusted = open_authority(tmp_path / "own", datetime.now(UTC))
        nodes = KubeletConnector(world.registry, shown(tmp_path, trusted, CLIENT_NAME))
        with pytest.raises(StatusError, match='nodes "n9" not found'):
            await nodes.connect("n9", "ask")
        with pytest.raises(StatusError, match="does not say where"):
            await nodes.connect("n1", "ask")
        await say(world, 1)
        with pytest.raises(StatusError, match=r"error dialing backend: the kubelet of node n1 at 127\.0\.0\.1:1"):
            await nodes.connect("n1", "ask")
        await say(world, 1, nodeInfo={"containerRuntimeVersion": "hollow://1"})
        with pytest.raises(StatusError, match=r"node n1 is hollow: .* no container to run a command in") as refused:
            await nodes.connect("n1", "run a command in")
        assert refused.value.code == 501

    tell(story)


@pytest.mark.parametrize(
    "addresses, found",
    [
        ([("Hostname", "h"), ("InternalIP", "10.0.0.1"), ("InternalIP", "fd00::1")], "10.0.0.1"),
        ([("ExternalIP", "1.2.3.4"), ("Hostname", "h")], "1.2.3.4"),
        ([("Hostname", "h")], "h"),
        ([], ""),
    ],
)
def test_the_address_of_a_node(addresses: list[tuple[str, str]], found: str) -> None:
    listed = [{"type": kind, "address": address} for kind, address in addresses]
    status = {"addresses": listed, "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}}}
    assert address_of({"status": status}) == (found, 10250)
