"""Requests for certificates: who asks is on record, what is approved without a person, and what is signed."""

import asyncio
import base64
import ipaddress
import itertools
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from situate.server.aggregation.connector import CLIENT_NAME as FRONT_PROXY
from situate.server.errors import StatusError
from situate.server.identity.authorization.authorization import Authorization
from situate.server.identity.bootstrap import bootstrap
from situate.server.identity.joining.bootstrap_tokens import BootstrapTokens, new_token, token_secret
from situate.server.identity.joining.certificate_signer import KUBELET_CLIENT, KUBELET_SERVING, CertificateSigner
from situate.server.identity.joining.csr_admission import CLIENT, REQUESTS, CertificateRequestAdmission
from situate.server.identity.pki import certificates
from situate.server.identity.pki.authority import open_authority
from situate.server.kubelet.connector import CLIENT_NAME as KUBELET_CALLER
from situate.server.registry.cache import Cache
from situate.server.registry.registry import Registry
from situate.server.requests import SYSTEM, Caller, Object, Target
from situate.server.resources import BY_KIND
from situate.store.memory import MemoryStore

NOW = datetime.now(UTC).replace(microsecond=0)
CLIENT_USAGES = ["digital signature", "client auth"]
SERVING_USAGES = ["digital signature", "server auth"]
NODES, SECRETS = BY_KIND["v1", "Node"], BY_KIND["v1", "Secret"]
NODE = Caller("system:node:n1", ("system:nodes", "system:authenticated"))
JANE = Caller("jane", ("system:authenticated",))


class World:
    def __init__(self, registry: Registry, signer: CertificateSigner) -> None:
        self.registry, self.signer = registry, signer
        self.now = NOW

    async def token(self, node: str = "", *, kubelet: bool = True) -> Caller:
        token = new_token()
        secret = token_secret(token, NOW + timedelta(hours=1), node, kubelet=kubelet)
        await self.registry.create(Target(SECRETS, "kube-system"), secret, SYSTEM)
        found = BootstrapTokens(self.registry.cache).find(token, NOW)
        assert found is not None
        return found

    async def node(self, *addresses: str) -> None:
        listed = [{"type": "InternalIP", "address": one} for one in addresses]
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {"addresses": listed}}
        await self.registry.create(Target(NODES), node, SYSTEM)

    async def ask(self, caller: Caller, signer: str, request: bytes, usages: list[str], **more: Any) -> None:
        spec = {"signerName": signer, "usages": usages, "request": base64.b64encode(request).decode(), **more}
        body = {"apiVersion": REQUESTS.api_version, "kind": REQUESTS.kind, "metadata": {"name": "r"}, "spec": spec}
        await self.registry.create(Target(REQUESTS), body, caller)

    async def look(self) -> Object:
        """Approve, then sign."""
        await self.signer.look()
        await self.signer.look()
        return (await self.registry.get(Target(REQUESTS, "", "r"))).object(REQUESTS)

    async def approve(self, caller: Caller, kind: str = "Approved") -> None:
        held = (await self.registry.get(Target(REQUESTS, "", "r"))).object(REQUESTS)
        status = {"conditions": [{"type": kind, "status": "True", "reason": "r", "message": "m"}]}
        await self.registry.update(Target(REQUESTS, "", "r", "approval"), {**held, "status": status}, caller)


def tell(tmp_path: Path, story: Callable[[World], Awaitable[None]]) -> None:
    async def run() -> None:
        store, numbers = MemoryStore(), itertools.count(1)
        cache = Cache(store)
        authorization = Authorization(cache)
        registry = Registry(
            store,
            wall_ns=lambda: int(NOW.timestamp() * 1e9),
            new_uid=lambda: f"uid-{next(numbers)}",
            cache=cache,
            admission=[CertificateRequestAdmission(authorization)],
        )
        await registry.start()
        authority = open_authority(tmp_path / "pki", NOW)
        await bootstrap(registry, authority.bundle.decode())
        world = World(registry, CertificateSigner(registry, authority, authorization, lambda: world.now))
        try:
            async with asyncio.timeout(30):
                await story(world)
        finally:
            await registry.aclose()

    asyncio.run(run())


def request(
    user: str = "system:node:n1", groups: tuple[str, ...] = ("system:nodes",), *names: str, key: Any = None
) -> bytes:
    builder = x509.CertificateSigningRequestBuilder().subject_name(certificates.subject(user, groups))
    if names:
        listed: list[x509.GeneralName] = []
        for one in names:
            is_address = one.replace(".", "").isdecimal()
            listed.append(x509.IPAddress(ipaddress.ip_address(one)) if is_address else x509.DNSName(one))
        builder = builder.add_extension(x509.SubjectAlternativeName(listed), critical=False)
    made = builder.sign(key or ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return made.public_bytes(serialization.Encoding.PEM)


def certificate(obj: Object) -> x509.Certificate | None:
    found = obj["status"].get("certificate")
    return x509.load_pem_x509_certificate(base64.b64decode(found)) if found else None


def test_a_kubelet_with_a_token_gets_the_certificate_of_its_node(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        caller = await world.token()
        await world.ask(caller, KUBELET_CLIENT, request(), CLIENT_USAGES, expirationSeconds=600)
        obj = await world.look()
        assert obj["spec"]["username"] == caller.name
        assert obj["status"]["conditions"][0]["reason"] == "AutoApproved"
        made = certificate(obj)
        assert made is not None
        assert made.subject == certificates.subject("system:node:n1", ("system:nodes",))
        purposes = made.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        assert list(purposes) == [ExtendedKeyUsageOID.CLIENT_AUTH]
        assert made.not_valid_after_utc == NOW + timedelta(seconds=600)

    tell(tmp_path, story)


def test_what_changes_during_a_look_is_looked_at_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The approval is an event of its own, and may be seen before the look that wrote it has ended."""

    async def story(world: World) -> None:
        look = world.signer.look

        async def slow_look() -> None:
            await look()
            await asyncio.sleep(0.05)

        monkeypatch.setattr(world.signer, "look", slow_look)
        running = asyncio.create_task(world.signer.run())
        await world.ask(await world.token(), KUBELET_CLIENT, request(), CLIENT_USAGES)
        try:
            async with asyncio.timeout(10):
                while (
                    not (await world.registry.get(Target(REQUESTS, "", "r")))
                    .object(REQUESTS)["status"]
                    .get("certificate")
                ):
                    await asyncio.sleep(0.01)
        finally:
            running.cancel()

    tell(tmp_path, story)


def test_a_node_renews_its_own_certificate(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        await world.node("10.0.0.1")
        await world.ask(NODE, KUBELET_CLIENT, request(), CLIENT_USAGES)
        assert certificate(await world.look()) is not None

    tell(tmp_path, story)


@pytest.mark.parametrize(
    "how",
    [
        pytest.param({"user": "system:node:n2"}, id="of another node"),
        pytest.param({"user": "root"}, id="of somebody who is no node"),
        pytest.param({"groups": ("system:masters",)}, id="in another group"),
        pytest.param({"groups": ("system:nodes", "system:masters")}, id="in one group more"),
    ],
)
def test_a_node_gets_no_certificate(how: dict[str, Any], tmp_path: Path) -> None:
    async def story(world: World) -> None:
        await world.ask(NODE, KUBELET_CLIENT, request(**how), CLIENT_USAGES)
        obj = await world.look()
        assert certificate(obj) is None
        assert not obj["status"].get("conditions")

    tell(tmp_path, story)


def test_a_token_takes_no_name_of_a_node_that_exists_unless_it_is_for_it(tmp_path: Path) -> None:
    async def taken(world: World) -> None:
        await world.node("10.0.0.1")
        await world.ask(await world.token(), KUBELET_CLIENT, request(), CLIENT_USAGES)
        assert certificate(await world.look()) is None

    async def replaced(world: World) -> None:
        await world.node("10.0.0.1")
        await world.ask(await world.token("n1"), KUBELET_CLIENT, request(), CLIENT_USAGES)
        assert certificate(await world.look()) is not None

    async def other(world: World) -> None:
        await world.ask(await world.token("n2"), KUBELET_CLIENT, request(), CLIENT_USAGES)
        assert certificate(await world.look()) is None

    async def agents(world: World) -> None:
        """A one-time token of an agent is not for this."""
        await world.ask(await world.token(kubelet=False), KUBELET_CLIENT, request(), CLIENT_USAGES)
        assert certificate(await world.look()) is None

    for number, story in enumerate((taken, replaced, other, agents)):
        tell(tmp_path / str(number), story)


def test_the_certificate_of_a_nodes_port_has_the_addresses_that_the_node_has(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        await world.ask(
            NODE, KUBELET_SERVING, request("system:node:n1", ("system:nodes",), "10.0.0.1", "n1"), SERVING_USAGES
        )
        assert certificate(await world.look()) is None, "there is no Node yet"
        await world.node("10.0.0.1", "n1")
        made = certificate(await world.look())
        assert made is not None
        names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert [str(one.value) for one in names] == ["10.0.0.1", "n1"]
        purposes = made.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        assert list(purposes) == [ExtendedKeyUsageOID.SERVER_AUTH]

    tell(tmp_path, story)


@pytest.mark.parametrize(
    "caller, names",
    [
        pytest.param(NODE, ("10.0.0.1", "10.0.0.2"), id="an address that it does not have"),
        pytest.param(NODE, ("kubernetes",), id="the server's name"),
        pytest.param(NODE, (), id="no name"),
        pytest.param(JANE, ("10.0.0.1",), id="somebody else"),
    ],
)
def test_no_other_certificate_of_a_nodes_port_is_approved(
    caller: Caller, names: tuple[str, ...], tmp_path: Path
) -> None:
    async def story(world: World) -> None:
        await world.node("10.0.0.1")
        await world.ask(caller, KUBELET_SERVING, request("system:node:n1", ("system:nodes",), *names), SERVING_USAGES)
        assert certificate(await world.look()) is None

    tell(tmp_path, story)


def test_a_person_gets_a_certificate_once_somebody_with_the_right_has_approved_it(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        key = rsa.generate_private_key(65_537, 2_048)
        await world.ask(JANE, CLIENT, request("jane", ("dev",), key=key), ["client auth", "key encipherment"])
        assert certificate(await world.look()) is None
        with pytest.raises(StatusError, match='user not permitted to approve requests with signerName "kubernetes'):
            await world.approve(JANE)
        await world.approve(SYSTEM)
        made = certificate(await world.look())
        assert made is not None
        assert made.subject == certificates.subject("jane", ("dev",))

    tell(tmp_path, story)


@pytest.mark.parametrize("approved", [False, True])
def test_a_status_is_changed_only_with_the_right_to_sign(approved: bool, tmp_path: Path) -> None:
    """Without it, a write of the status that changes nothing passes."""

    async def story(world: World) -> None:
        await world.ask(JANE, CLIENT, request("jane", ()), ["server auth"])
        if approved:
            await world.approve(SYSTEM)
        here, held = Target(REQUESTS, "", "r", "status"), await world.look()
        await world.registry.update(here, held, JANE)
        condition = {"type": "Failed", "status": "True", "reason": "mine", "message": ""}
        conditions = [*held["status"].get("conditions", ())[:1], condition]
        with pytest.raises(StatusError, match='user not permitted to sign requests with signerName "kubernetes'):
            await world.registry.update(here, {**held, "status": {"conditions": conditions}}, JANE)
        with pytest.raises(StatusError, match='user not permitted to sign requests with signerName "kubernetes'):
            await world.registry.update(here, {**held, "status": {"certificate": "LS0="}}, JANE)

    tell(tmp_path, story)


def test_what_was_denied_is_never_signed(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        await world.ask(JANE, CLIENT, request("jane", ()), CLIENT_USAGES)
        await world.approve(SYSTEM, "Denied")
        assert certificate(await world.look()) is None
        with pytest.raises(StatusError, match="may not remove a condition"):
            await world.approve(SYSTEM)

    tell(tmp_path, story)


def test_what_cannot_be_signed_has_failed(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        await world.ask(JANE, CLIENT, request("jane", ()), ["server auth"])
        await world.approve(SYSTEM)
        obj = await world.look()
        assert [one["type"] for one in obj["status"]["conditions"]] == ["Approved", "Failed"]

    tell(tmp_path, story)


@pytest.mark.parametrize("name", [FRONT_PROXY, KUBELET_CALLER])
def test_nobody_gets_a_name_that_the_server_itself_shows(name: str, tmp_path: Path) -> None:
    async def story(world: World) -> None:
        await world.ask(JANE, CLIENT, request(name, ()), CLIENT_USAGES)
        await world.approve(SYSTEM)
        obj = await world.look()
        assert certificate(obj) is None
        assert [one["type"] for one in obj["status"]["conditions"]] == ["Approved", "Failed"]
        assert f"{name} is this server's own name to " in obj["status"]["conditions"][1]["message"]

    tell(tmp_path, story)


def test_nobody_asks_for_the_administrators_group_or_in_anothers_name(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        with pytest.raises(StatusError, match="system:masters group is not allowed"):
            await world.ask(JANE, CLIENT, request("jane", ("system:masters",)), CLIENT_USAGES)
        await world.ask(JANE, CLIENT, request("jane", ()), CLIENT_USAGES, username="root", groups=["system:masters"])
        obj = await world.look()
        assert (obj["spec"]["username"], obj["spec"]["groups"]) == ("jane", ["system:authenticated"])

    tell(tmp_path, story)


@pytest.mark.parametrize(
    "spec, message",
    [
        ({"request": "bm9uZQ=="}, "PEM block type must be CERTIFICATE REQUEST"),
        ({"usages": []}, "spec.usages: Required value"),
        ({"usages": ["fun"]}, 'Unsupported value: "fun"'),
        ({"signerName": ""}, "spec.signerName: Required value"),
        ({"signerName": "me"}, "must be a fully qualified domain"),
        ({"signerName": "kubernetes.io/legacy-unknown"}, "the legacy signerName is not allowed"),
        ({"expirationSeconds": 5}, "may not specify a duration less than 600 seconds"),
    ],
)
def test_a_request_that_is_none(spec: dict[str, Any], message: str, tmp_path: Path) -> None:
    async def story(world: World) -> None:
        good = {
            "signerName": CLIENT,
            "usages": CLIENT_USAGES,
            "request": base64.b64encode(request("jane", ())).decode(),
        }
        body = {"apiVersion": REQUESTS.api_version, "kind": REQUESTS.kind, "metadata": {"name": "r"}}
        with pytest.raises(StatusError, match=message):
            await world.registry.create(Target(REQUESTS), {**body, "spec": good | spec}, JANE)

    tell(tmp_path, story)


def test_old_requests_are_removed(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        await world.ask(await world.token(), KUBELET_CLIENT, request(), CLIENT_USAGES)
        await world.look()
        world.now += timedelta(minutes=61)
        await world.signer.look()
        assert not list(world.registry.cache.all(REQUESTS))

    tell(tmp_path, story)


def test_a_token_of_kubeadm_is_a_token(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        data = {
            "token-id": "abcdef",
            "token-secret": "0123456789abcdef",
            "usage-bootstrap-authentication": "true",
            "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token,system:masters",
        }
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "bootstrap-token-abcdef", "namespace": "kube-system"},
            "type": "bootstrap.kubernetes.io/token",
            "stringData": data,
        }
        await world.registry.create(Target(SECRETS, "kube-system"), secret, SYSTEM)
        found = BootstrapTokens(world.registry.cache).find("abcdef.0123456789abcdef", NOW)
        assert found is not None
        assert found.groups == (
            "system:bootstrappers",
            "system:bootstrappers:kubeadm:default-node-token",
            "system:authenticated",
        )

    tell(tmp_path, story)
