"""A node joins once with a token, as the node that it says, and gets a certificate for that node and nothing else."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa

from server.identity.memory import Memory
from situate.server.errors import StatusError
from situate.server.identity.authentication import Authentication
from situate.server.identity.authorization.attributes import Attributes
from situate.server.identity.authorization.authorization import Authorization
from situate.server.identity.joining.bootstrap_tokens import (
    MAX_FAILURES,
    BootstrapTokens,
    new_token,
    read_token,
    token_secret,
)
from situate.server.identity.joining.node_joins import NodeJoins
from situate.server.identity.pki import certificates
from situate.server.identity.pki.authority import Authority, open_authority
from situate.server.requests import Caller

NOW = datetime.now(UTC).replace(microsecond=0)
HOUR = timedelta(hours=1)
KEY = certificates.new_key()
CSR = certificates.signing_request(KEY, certificates.subject("anybody")).decode()
NODE = Caller("system:node:n1", ("system:nodes", "system:authenticated"))
ADMIN = Caller("root", ("system:masters",))


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return open_authority(tmp_path_factory.mktemp("ca") / "pki", NOW)


def body(node: str = "n1", request: str = CSR) -> dict[str, object]:
    return {"kind": "NodeJoin", "spec": {"nodeName": node, "request": request}}


def given(world: Memory, node: str = "", life: timedelta = HOUR) -> str:
    token = new_token()
    world.put(token_secret(token, NOW + life, node))
    return token


def caller_of(world: Memory, token: str) -> Caller:
    found = BootstrapTokens(world).find(token, NOW)
    assert found is not None
    return found


def joined(authority: Authority, world: Memory, caller: Caller, node: str = "n1") -> x509.Certificate:
    made = asyncio.run(NodeJoins(authority, world, lambda: NOW).create(body(node), caller))
    return x509.load_pem_x509_certificate(made["status"]["certificate"].encode())


def refusal(authority: Authority, world: Memory, caller: Caller, node: str = "n1", request: str = CSR) -> str:
    with pytest.raises(StatusError) as error:
        asyncio.run(NodeJoins(authority, world, lambda: NOW).create(body(node, request), caller))
    return error.value.message


def test_a_token_is_good_for_one_node_once(authority: Authority, world: Memory) -> None:
    caller = caller_of(world, token := given(world))
    made = joined(authority, world, caller)
    assert made.subject.rfc4514_string() == "CN=system:node:n1,O=system:nodes"
    assert made.public_key() == KEY.public_key()
    made.verify_directly_issued_by(authority.certificate)
    assert refusal(authority, world, caller, "n2") == 'nodes "n2" is forbidden: the token has already been used'
    assert BootstrapTokens(world).find(token, NOW) is None


def test_two_at_once_get_one_certificate(authority: Authority, world: Memory) -> None:
    caller = caller_of(world, given(world))
    joins = NodeJoins(authority, world, lambda: NOW)

    async def both() -> list[object]:
        return [
            *await asyncio.gather(
                joins.create(body("n1"), caller), joins.create(body("n2"), caller), return_exceptions=True
            )
        ]

    assert sorted(isinstance(one, StatusError) for one in asyncio.run(both())) == [False, True]


def test_a_token_expires(world: Memory) -> None:
    token = given(world)
    tokens = BootstrapTokens(world)
    assert tokens.find(token, NOW + HOUR - timedelta(seconds=1)) is not None
    assert tokens.find(token, NOW + HOUR) is None


def test_the_store_has_no_token(world: Memory) -> None:
    token = new_token()
    text = str(token_secret(token, NOW + HOUR)["data"])
    assert token not in text
    assert token.partition(".")[2] not in text


def test_a_bound_token_is_for_that_node_only(authority: Authority, world: Memory) -> None:
    caller = caller_of(world, given(world, "n1"))
    assert refusal(authority, world, caller, "n2") == 'nodes "n2" is forbidden: the token is for node "n1"'
    assert joined(authority, world, caller, "n1").serial_number


def test_no_machine_takes_the_place_of_another(authority: Authority, world: Memory) -> None:
    caller = caller_of(world, given(world))
    assert "already exists" in refusal(authority, world, caller, "alpha")
    assert joined(authority, world, caller, "gamma").serial_number
    assert joined(authority, world, caller_of(world, given(world, "alpha")), "alpha").serial_number


def test_guesses_are_limited(world: Memory) -> None:
    token = given(world)
    tokens = BootstrapTokens(world)
    wrong = token[:-1] + ("a" if token[-1] != "a" else "b")
    for _ in range(MAX_FAILURES):
        assert tokens.find(token, NOW) is not None
        assert tokens.find(wrong, NOW) is None
    assert tokens.find(token, NOW) is None


def test_a_node_renews_its_own_certificate_only(authority: Authority, world: Memory) -> None:
    assert joined(authority, world, NODE).serial_number
    assert (
        refusal(authority, world, NODE, "n2") == 'nodes "n2" is forbidden: node "n1" can only renew its own certificate'
    )


def test_an_administrator_adds_any_node(authority: Authority, world: Memory) -> None:
    assert joined(authority, world, ADMIN, "alpha").serial_number


@pytest.mark.parametrize(
    "node, request_, field",
    [
        ("No", CSR, "spec.nodeName"),
        ("", CSR, "spec.nodeName"),
        ("n1", "", "spec.request"),
        ("n1", "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n", "spec.request"),
        ("n1", CSR + "x" * 20_000, "spec.request"),
    ],
)
def test_a_bad_request_does_not_use_up_the_token(
    authority: Authority, world: Memory, node: str, request_: str, field: str
) -> None:
    caller = caller_of(world, given(world))
    assert field in refusal(authority, world, caller, node, request_)
    assert joined(authority, world, caller, "n1").serial_number


def test_a_key_that_is_not_ecdsa_is_refused(authority: Authority, world: Memory) -> None:
    key = rsa.generate_private_key(65537, 2048)
    request = certificates.signing_request(key, certificates.subject("n1")).decode()  # type: ignore[arg-type]
    assert "the key must be ECDSA" in refusal(authority, world, NODE, "n1", request)


def test_a_joining_node_may_join_and_do_nothing_else(world: Memory) -> None:
    caller = caller_of(world, given(world))
    authorization = Authorization(world)

    def allowed(verb: str, group: str, resource: str, name: str = "") -> bool:
        return authorization.allows(caller, Attributes(verb, group, resource, name=name)).allowed

    assert allowed("create", "situate.dev", "nodejoins")
    assert not allowed("create", "", "nodes")
    assert not allowed("get", "", "secrets", "x")
    assert not allowed("list", "", "pods")


def test_authentication_knows_the_tokens(world: Memory) -> None:
    token = given(world)
    authentication = Authentication(clock=lambda: NOW, bootstrap=BootstrapTokens(world))
    found = authentication.authenticate(None, f"Bearer {token}")
    assert found.name == f"system:bootstrap:{token[:6]}"
    assert found.groups == ("system:bootstrappers", "system:authenticated")


def test_other_secrets_are_not_tokens() -> None:
    made = token_secret(new_token(), NOW)
    assert read_token(made) is not None
    assert read_token({**made, "type": "Opaque"}) is None
    assert read_token({**made, "metadata": {**made["metadata"], "name": "bootstrap-token-other0"}}) is None
    assert read_token({**made, "data": {}}) is None
    assert read_token({**made, "data": {**made["data"], "expiration": "bm90IGEgdGltZQ=="}}) is None
