"""A node joins once with a token, as the node that it says, and gets a certificate for that node and nothing else."""

import asyncio
import base64
import re
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa

from server.identity.memory import Memory
from situate.server.errors import StatusError, conflict, not_found
from situate.server.http.ports import CreateRequest
from situate.server.identity.authentication import Authentication
from situate.server.identity.authorization.attributes import Attributes
from situate.server.identity.authorization.authorization import Authorization
from situate.server.identity.joining import bootstrap_tokens
from situate.server.identity.joining.bootstrap_tokens import (
    MAX_FAILURES,
    BootstrapTokens,
    new_token,
    read_token,
    token_secret,
)
from situate.server.identity.joining.node_joins import MAX_REQUEST_BYTES, NodeJoins
from situate.server.identity.pki import certificates
from situate.server.identity.pki.authority import Authority, open_authority
from situate.server.identity.ports import resource_of
from situate.server.requests import Caller, DeleteOptions, Object, Target

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


class Refusing(Memory):
    """A registry that refuses to delete."""

    def __init__(self, error: StatusError) -> None:
        super().__init__()
        self.error = error

    async def delete(self, target: Target, caller: Caller, options: DeleteOptions) -> None:
        raise self.error


@pytest.mark.parametrize(
    "error, text",
    [
        (not_found("secrets", "", "x"), "the token has already been used"),
        (conflict("secrets", "", "x"), "the token has already been used"),
        (StatusError(500, "InternalError", "the disk is full"), "the disk is full"),
    ],
)
def test_nothing_is_signed_if_the_token_cannot_be_used_up(authority: Authority, error: StatusError, text: str) -> None:
    registry = Refusing(error)
    assert refusal(authority, registry, caller_of(registry, given(registry))).endswith(text)


def test_a_dry_run_signs_nothing_and_leaves_the_token(authority: Authority, world: Memory) -> None:
    caller = caller_of(world, given(world))
    joins = NodeJoins(authority, world, lambda: NOW)
    assert asyncio.run(joins.create(body(), caller, dry_run=True)) == {**body(), "status": {}}
    assert joined(authority, world, caller).serial_number
    (handler,) = joins.handlers().values()
    target = Target(resource_of("situate.dev/v1alpha1", "nodejoins"))
    dry, real = (CreateRequest(target, body("n5"), ADMIN, dry_run=dry_run) for dry_run in (True, False))

    async def call(request: CreateRequest) -> Object:
        return await handler.call(request)

    assert asyncio.run(call(dry))["status"] == {}
    assert asyncio.run(call(real))["status"]["certificateAuthority"] == authority.bundle.decode()


def test_a_request_may_be_as_long_as_the_limit(authority: Authority, world: Memory) -> None:
    longest = CSR + "\n" * (MAX_REQUEST_BYTES - len(CSR))
    made = asyncio.run(NodeJoins(authority, world, lambda: NOW).create(body("n1", longest), ADMIN))
    assert made["status"]["certificate"]
    assert "may not be longer than" in refusal(authority, world, ADMIN, "n1", longest + "\n")


def test_a_long_name_is_cut_off_in_the_refusal(authority: Authority, world: Memory) -> None:
    assert '"' + "n" * 253 + '"' in refusal(authority, world, ADMIN, "n" * 5_000)
    assert "n" * 254 not in refusal(authority, world, ADMIN, "n" * 5_000)


def test_failures_are_remembered_for_so_many_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap_tokens, "MAX_COUNTED", 2)
    monkeypatch.setattr(bootstrap_tokens, "MAX_FAILURES", 1)
    world = Memory()
    tokens, known = [given(world) for _ in range(3)], BootstrapTokens(world)

    def wrong(token: str) -> str:
        return token[:-1] + ("a" if token[-1] != "a" else "b")

    for token in tokens[:2]:
        assert known.find(wrong(token), NOW) is None
    assert [known.find(token, NOW) is not None for token in tokens] == [False, False, True]
    assert known.find(wrong(tokens[2]), NOW) is None
    assert [known.find(token, NOW) is not None for token in tokens] == [True, False, False]


@pytest.mark.parametrize(
    "field, value, usable",
    [
        ("usage-bootstrap-authentication", "true", True),
        ("usage-bootstrap-authentication", "false", False),
        ("expiration", "2036-01-01T00:00:00", True),
        ("expiration", "2036-01-01T02:00:00+02:00", True),
        ("token-sha256", None, False),
    ],
)
def test_a_secret_is_a_token_with_all_its_fields(field: str, value: str | None, usable: bool) -> None:
    made = token_secret(new_token(), NOW, "n1")
    made["data"].pop(field)
    if value is not None:
        made["data"][field] = base64.b64encode(value.encode()).decode()
    found = read_token(made)
    assert (found is not None) is usable
    if found is not None and field == "expiration":
        assert found.expires == datetime(2036, 1, 1, tzinfo=UTC)
        assert found.node == "n1"


def test_a_token_has_the_shape_of_kubernetes_tokens() -> None:
    assert re.fullmatch(r"[a-z0-9]{6}\.[a-z0-9]{16}", new_token())
    assert "node-name" not in token_secret(new_token(), NOW)["data"]
