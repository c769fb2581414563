"""Tokens of service accounts, and what must not pass for one."""

import base64
import json
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization

from server.identity.clock import Clock
from server.identity.memory import Memory
from server.identity.world import objects
from situate.server.errors import StatusError
from situate.server.identity.authentication import Authentication
from situate.server.identity.authorization.authorization import Authorization
from situate.server.identity.authorization.node_restriction import NodeRestriction
from situate.server.identity.pki.account_keys import AccountKeys
from situate.server.identity.pki.certificates import new_key
from situate.server.identity.ports import resource_of
from situate.server.identity.tokens import service_account_tokens
from situate.server.identity.tokens.service_account_tokens import (
    ISSUER,
    LEEWAY_S,
    MAX_TOKEN_BYTES,
    AccountTokens,
    BoundObject,
    TokenError,
)
from situate.server.identity.tokens.token_files import UserTokens
from situate.server.identity.tokens.token_requests import TokenRequests
from situate.server.requests import Caller, Object, Target

ADMIN = Caller("root", ("system:masters",))
ACCOUNTS = resource_of("v1", "serviceaccounts")
PODS = resource_of("v1", "pods")
WEB = Target(ACCOUNTS, "shop", "web-account", "token")


class Desk:
    """A server that gives tokens, and looks at them."""

    def __init__(self, folder: Path) -> None:
        self.memory = Memory(*objects())
        self.clock = Clock()
        self.key = new_key()
        self.tokens = AccountTokens(AccountKeys(self.key), self.memory)
        authorization = Authorization(self.memory)
        restriction = NodeRestriction(self.memory, authorization)
        uids = (f"jti-{number}" for number in range(1000))
        self.requests = TokenRequests(
            self.memory, self.tokens, restriction, clock=self.clock, new_uid=lambda: next(uids)
        )
        self.authentication = Authentication(
            clock=self.clock, accounts=self.tokens, users=UserTokens(folder / "tokens.json")
        )

    def request(self, **spec: Any) -> Object:
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        return self.requests.create(WEB, body, ADMIN)

    def token(self, **spec: Any) -> str:
        return str(self.request(**spec)["status"]["token"])

    def claims(self, **spec: Any) -> Any:
        return jwt.decode(self.token(**spec), options={"verify_signature": False})

    def signed(self, claims: Any, **more: Any) -> str:
        return jwt.encode(claims, more.pop("key", self.key), algorithm=more.pop("algorithm", "ES256"), headers=more)

    def who(self, token: str) -> str:
        try:
            return self.authentication.authenticate(None, f"Bearer {token}").name
        except StatusError as error:
            return f"{error.code} {error.reason}"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


WEB_USER = "system:serviceaccount:shop:web-account"
REFUSED = "401 Unauthorized"


def test_a_token_says_which_account_comes(desk: Desk) -> None:
    answer = desk.request()
    caller = desk.authentication.authenticate(None, f"Bearer {answer['status']['token']}", "kubectl/1")
    assert caller.name == WEB_USER
    assert caller.groups == ("system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated")
    assert caller.uid == answer["metadata"]["uid"]
    assert caller.extra["authentication.kubernetes.io/credential-id"] == ("JTI=jti-0",)
    assert caller.agent == "kubectl/1"


def test_the_claims_are_those_of_kubernetes(desk: Desk) -> None:
    pod = desk.memory.get(PODS, "shop", "web")
    assert pod is not None
    uid = pod.value["metadata"]["uid"]
    claims = desk.claims(boundObjectRef={"kind": "Pod", "apiVersion": "v1", "name": "web", "uid": uid})
    now = int(desk.clock.now.timestamp())
    assert (claims["iss"], claims["aud"], claims["sub"]) == (ISSUER, [ISSUER], WEB_USER)
    assert (claims["iat"], claims["nbf"], claims["exp"]) == (now, now, now + 3600)
    assert claims["kubernetes.io"]["pod"] == {"name": "web", "uid": uid}
    assert claims["kubernetes.io"]["node"]["name"] == "alpha"
    assert claims["kubernetes.io"]["serviceaccount"]["name"] == "web-account"


def test_a_token_ends_when_it_says(desk: Desk) -> None:
    token = desk.token(expirationSeconds=600)
    desk.clock.turn(seconds=599)
    assert desk.who(token) == WEB_USER
    desk.clock.turn(seconds=1)
    assert desk.who(token) == REFUSED


def test_a_token_ends_with_its_account_also_if_another_of_that_name_comes(desk: Desk) -> None:
    token = desk.token()
    assert desk.who(token) == WEB_USER
    desk.memory.remove(ACCOUNTS, "shop", "web-account")
    assert desk.who(token) == REFUSED
    desk.memory.put(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "web-account", "namespace": "shop"}}
    )
    assert desk.who(token) == REFUSED


@pytest.mark.parametrize(
    "kind, plural, name", [("Pod", "pods", "web"), ("Secret", "secrets", "web-secret"), ("Node", "nodes", "alpha")]
)
def test_a_bound_token_ends_with_what_it_is_bound_to(desk: Desk, kind: str, plural: str, name: str) -> None:
    token = desk.token(boundObjectRef={"kind": kind, "apiVersion": "v1", "name": name})
    assert desk.who(token) == WEB_USER
    desk.memory.remove(resource_of("v1", plural), "" if kind == "Node" else "shop", name)
    assert desk.who(token) == REFUSED


def test_a_token_for_others_is_none_for_us(desk: Desk) -> None:
    token = desk.token(audiences=["vault"])
    assert desk.who(token) == REFUSED
    assert desk.authentication.review(token, ["vault", "bank"]).audiences == ("vault",)
    with pytest.raises(TokenError, match="is invalid for the target audiences"):
        desk.authentication.review(token, ["bank"])


# ── what must not pass ───────────────────────────────────────────────────────────────────────────────────────────────


def encoded(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def test_a_tampered_token_is_refused(desk: Desk) -> None:
    head, body, signature = desk.token().split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    claims["sub"] = "system:serviceaccount:kube-system:default"
    assert desk.who(f"{head}.{encoded(claims)}.{signature}") == REFUSED
    flipped = ("A" if signature[0] != "A" else "B") + signature[1:]
    assert desk.who(f"{head}.{body}.{flipped}") == REFUSED
    assert desk.who(f"{head}.{body}.") == REFUSED
    assert desk.who(f"{head}.{body}.{signature}") == WEB_USER


def test_every_byte_of_a_token_counts(desk: Desk) -> None:
    token = desk.token()
    for index in range(0, len(token) - 1, 7):
        other = "A" if token[index] != "A" else "B"
        assert desk.who(token[:index] + other + token[index + 1 :]) == REFUSED, index


def test_a_token_that_is_too_long_is_not_decoded(desk: Desk) -> None:
    claims = desk.claims()
    without = len(desk.signed({**claims, "padding": ""}))

    def long(by: int) -> str:
        return desk.signed({**claims, "padding": "x" * (by * 3 // 4)})

    fits, most = long(MAX_TOKEN_BYTES - without), long(MAX_TOKEN_BYTES - without + 8)
    assert len(fits) <= MAX_TOKEN_BYTES < len(most)
    assert (desk.tokens.claims_our_issuer(fits), desk.who(fits)) == (True, WEB_USER)
    assert (desk.tokens.claims_our_issuer(most), desk.who(most)) == (False, REFUSED)


def test_a_token_without_a_signature_is_refused(desk: Desk) -> None:
    claims = desk.claims()
    for algorithm in ("none", "None", "NONE"):
        assert desk.who(f"{encoded({'alg': algorithm, 'typ': 'JWT'})}.{encoded(claims)}.") == REFUSED


def test_our_public_key_as_a_shared_secret_is_refused(desk: Desk) -> None:
    import hashlib
    import hmac

    public = desk.key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    signed = f"{encoded({'alg': 'HS256', 'typ': 'JWT'})}.{encoded(desk.claims())}"
    mac = base64.urlsafe_b64encode(hmac.new(public, signed.encode(), hashlib.sha256).digest()).rstrip(b"=").decode()
    assert desk.who(f"{signed}.{mac}") == REFUSED


def test_a_token_of_another_key_is_refused(desk: Desk) -> None:
    assert desk.who(desk.signed(desk.claims(), key=new_key())) == REFUSED


@pytest.mark.parametrize("missing", ["aud", "exp", "iat", "iss", "nbf", "sub", "kubernetes.io"])
def test_a_claim_that_is_missing_is_missed(desk: Desk, missing: str) -> None:
    claims = desk.claims()
    del claims[missing]
    assert desk.who(desk.signed(claims)) == REFUSED


@pytest.mark.parametrize(
    "changed",
    [
        {"iss": "https://elsewhere"},
        {"aud": ["elsewhere"]},
        {"exp": "soon"},
        {"exp": True},
        {"nbf": 4_000_000_000},
        {"iat": 4_000_000_000},
        {"sub": "system:serviceaccount:kube-system:default"},
        {"kubernetes.io": "x"},
        {"kubernetes.io": {}},
    ],
)
def test_a_claim_that_is_wrong_is_refused_even_if_it_is_signed(desk: Desk, changed: Object) -> None:
    assert desk.who(desk.signed(desk.claims() | changed)) == REFUSED


@pytest.mark.parametrize("text", ["x", "a.b.c", "..", "." * 30_000, "é.é.é", "\udcff.\udcff.\udcff"])
def test_what_is_no_token_at_all_is_refused(desk: Desk, text: str) -> None:
    assert desk.who(text) == REFUSED


def test_brackets_without_end_are_refused(desk: Desk) -> None:
    deep = base64.urlsafe_b64encode(b"[" * 5000).rstrip(b"=").decode()
    head = encoded({"alg": "ES256"})
    for text in (f"{deep}.{deep}.{deep}", f"{head}.{deep}.AAAA", f"{deep}.{encoded({'iss': ISSUER})}.AAAA"):
        assert desk.who(text) == REFUSED


def test_a_key_that_a_token_brings_along_is_not_used(desk: Desk) -> None:
    own = new_key()
    jwk = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(own.public_key()))
    assert desk.who(desk.signed(desk.claims(), key=own, jwk=jwk, jku="https://evil", kid="../../etc/passwd")) == REFUSED


# ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def bound_to(kind: str, name: str, api: str = "v1", **more: str) -> Object:
    return {"boundObjectRef": {"apiVersion": api, "kind": kind, "name": name, **more}}


@pytest.mark.parametrize(
    "spec, code, text",
    [
        (
            {"expirationSeconds": 599},
            422,
            "expirationSeconds: Invalid value: 599: may not specify a duration less than",
        ),
        ({"expirationSeconds": (1 << 32) + 1}, 422, "may not specify a duration larger than 2^32 seconds"),
        (bound_to("Pod", "absent"), 404, 'pods "absent" not found'),
        (bound_to("Pod", "other"), 400, "different serviceaccount name."),
        (bound_to("Pod", "web", uid="x"), 409, "does not match the UID in record"),
        (bound_to("Deployment", "x"), 400, "cannot bind token to object of type /v1, Kind=Deployment"),
        (bound_to("Pod", "web", "apps/v1"), 400, "cannot bind token to object of type apps/v1, Kind=Pod"),
        (bound_to("Deployment", "x", "apps/v1"), 400, "cannot bind token to object of type apps/v1, Kind=Deployment"),
    ],
)
def test_a_request_that_is_wrong_is_told_what(desk: Desk, spec: Object, code: int, text: str) -> None:
    with pytest.raises(StatusError) as raised:
        desk.request(**spec)
    assert raised.value.code == code
    assert text in raised.value.message


def test_an_account_that_is_not_there_has_no_token(desk: Desk) -> None:
    with pytest.raises(StatusError, match='serviceaccounts "absent" not found'):
        desk.requests.create(Target(ACCOUNTS, "shop", "absent", "token"), {"spec": {}}, ADMIN)


@pytest.mark.parametrize("metadata, code", [({"name": "x"}, 422), ({"namespace": "x"}, 422), ({"uid": "x"}, 409)])
def test_a_request_for_somebody_else_is_refused(desk: Desk, metadata: Object, code: int) -> None:
    with pytest.raises(StatusError) as raised:
        desk.requests.create(WEB, {"metadata": metadata, "spec": {}}, ADMIN)
    assert raised.value.code == code


def test_the_answer_says_when_it_ends(desk: Desk) -> None:
    answer = desk.request(expirationSeconds=7200)
    desk.clock.turn(seconds=7200)
    assert answer["status"]["expirationTimestamp"] == f"{desk.clock.now:%Y-%m-%dT%H:%M:%SZ}"
    assert answer["spec"] == {"expirationSeconds": 7200, "audiences": [ISSUER]}
    assert answer["metadata"]["name"] == "web-account"


def test_the_least_and_the_longest_life_are_allowed(desk: Desk) -> None:
    for seconds in (600, 1 << 32):
        assert desk.request(expirationSeconds=seconds)["spec"]["expirationSeconds"] == seconds


def test_a_request_may_name_what_it_is_for(desk: Desk) -> None:
    account = desk.memory.get(ACCOUNTS, "shop", "web-account")
    assert account is not None
    metadata = {"name": "web-account", "namespace": "shop", "uid": account.value["metadata"]["uid"]}
    answer = desk.requests.create(WEB, {"metadata": metadata, "spec": {}}, ADMIN)
    assert desk.who(answer["status"]["token"]) == WEB_USER
    assert answer["metadata"] == metadata | {"creationTimestamp": f"{desk.clock.now:%Y-%m-%dT%H:%M:%SZ}"}


def test_a_node_gets_tokens_for_its_own_pods_only(desk: Desk) -> None:
    node = Caller("system:node:alpha", ("system:nodes", "system:authenticated"))
    pod = desk.memory.get(PODS, "shop", "web")
    assert pod is not None
    uid = pod.value["metadata"]["uid"]
    assert desk.requests.create(WEB, {"spec": bound_to("Pod", "web", uid=uid)}, node)["status"]["token"]
    with pytest.raises(StatusError, match="node requested token not bound to a pod"):
        desk.requests.create(WEB, {"spec": {}}, node)


@pytest.mark.parametrize(
    "kind, name, place",
    [("Pod", "web", "shop"), ("Secret", "web-secret", "shop"), ("Node", "alpha", "")],
)
def test_a_bound_token_is_not_for_another_object_of_that_name(desk: Desk, kind: str, name: str, place: str) -> None:
    token = desk.token(**bound_to(kind, name))
    assert desk.who(token) == WEB_USER
    found = desk.memory.get(resource_of("v1", f"{kind.lower()}s"), place, name)
    assert found is not None
    desk.memory.put(
        found.value | {"apiVersion": "v1", "kind": kind, "metadata": found.value["metadata"] | {"uid": "new"}}
    )
    assert desk.who(token) == REFUSED
    with pytest.raises(TokenError, match=f"{kind.lower()} UID \\(new\\) does not match service account"):
        desk.authentication.review(token)


def test_a_token_says_on_which_pod_and_node_its_account_runs(desk: Desk) -> None:
    pod, node = desk.memory.get(PODS, "shop", "web"), desk.memory.get(resource_of("v1", "nodes"), "", "alpha")
    assert pod is not None
    assert node is not None
    prefix = "authentication.kubernetes.io/"
    token = desk.token(**bound_to("Pod", "web"))
    assert desk.authentication.review(token).caller.extra == {
        f"{prefix}credential-id": ("JTI=jti-0",),
        f"{prefix}pod-name": ("web",),
        f"{prefix}pod-uid": (pod.value["metadata"]["uid"],),
        f"{prefix}node-name": ("alpha",),
        f"{prefix}node-uid": (node.value["metadata"]["uid"],),
    }
    # The node of a pod's token is informational: the token outlives it.
    desk.memory.remove(resource_of("v1", "nodes"), "", "alpha")
    assert desk.who(token) == WEB_USER
    later = desk.claims(**bound_to("Pod", "web"))
    assert later["kubernetes.io"]["node"] == {"name": "alpha"}
    unnamed = desk.signed({key: value for key, value in later.items() if key != "jti"})
    assert set(desk.authentication.review(unnamed).caller.extra) == {
        f"{prefix}{key}" for key in ("pod-name", "pod-uid", "node-name")
    }
    assert "node" not in desk.claims(**bound_to("Secret", "web-secret"))["kubernetes.io"]
    assert set(desk.claims()["kubernetes.io"]) == {"namespace", "serviceaccount"}


@pytest.mark.parametrize("claim", ["nbf", "iat"])
def test_the_clock_of_another_server_may_be_a_minute_ahead(desk: Desk, claim: str) -> None:
    claims = desk.claims()
    now = int(desk.clock.now.timestamp())
    assert desk.who(desk.signed(claims | {claim: now + LEEWAY_S})) == WEB_USER
    assert desk.who(desk.signed(claims | {claim: now + LEEWAY_S + 1})) == REFUSED


def test_a_token_may_have_one_audience_as_text(desk: Desk) -> None:
    claims = desk.claims()
    assert desk.who(desk.signed(claims | {"aud": ISSUER})) == WEB_USER
    assert desk.who(desk.signed(claims | {"aud": f"{ISSUER}/other"})) == REFUSED


@pytest.mark.parametrize("claim", ["exp", "nbf", "iat"])
def test_times_are_numbers(desk: Desk, claim: str) -> None:
    claims = desk.claims()
    assert desk.who(desk.signed(claims | {claim: float(claims[claim])})) == WEB_USER
    for wrong in (str(claims[claim]), True, None, [claims[claim]]):
        assert desk.who(desk.signed(claims | {claim: wrong})) == REFUSED


def test_signatures_that_were_verified_are_remembered_for_so_many_tokens(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_account_tokens, "MAX_CACHED_TOKENS", 2)
    checked: list[str] = []
    real = jwt.get_unverified_header

    def noted(token: str) -> dict[str, Any]:
        checked.append(token)
        return real(token)

    monkeypatch.setattr(jwt, "get_unverified_header", noted)
    first, second, third = (desk.token() for _ in range(3))
    for token in (first, second, first, second, third, third, first):
        assert desk.who(token) == WEB_USER
    assert checked == [first, second, third, first]


def test_a_server_has_its_own_issuer_and_audiences(desk: Desk) -> None:
    account = desk.memory.get(ACCOUNTS, "shop", "web-account")
    assert account is not None
    other = AccountTokens(AccountKeys(desk.key), desk.memory, "https://other", ("a", "b"))
    token = other.issue(account.object(ACCOUNTS), BoundObject(""), ["b"], desk.clock.now, 600, "id")
    assert (other.claims_our_issuer(token), desk.tokens.claims_our_issuer(token)) == (True, False)
    assert other.verify(token, desk.clock.now).audiences == ("b",)
    with pytest.raises(TokenError, match="invalid bearer token"):
        desk.tokens.verify(token, desk.clock.now)
