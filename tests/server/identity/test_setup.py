import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from server.identity.clock import Clock
from server.identity.memory import Memory
from server.identity.user_tokens import add_token
from situate.server.errors import StatusError
from situate.server.http.ports import CreateHandler, CreateRequest, Gate
from situate.server.identity.authorization.attributes import Attributes
from situate.server.identity.create_handlers import restricted
from situate.server.identity.secret_files import IdentityError
from situate.server.identity.setup import IdentityParts, open_identity
from situate.server.requests import Caller, Object, Target
from situate.server.resources import BY_KIND


def opened(folder: Path, world: Memory, clock: Clock) -> IdentityParts:
    return open_identity(folder, world, clock=clock, wall_ns=lambda: 0, new_uid=lambda: "uid")


def test_a_folder_is_made_at_first_and_found_again(tmp_path: Path, world: Memory) -> None:
    clock = Clock()
    first = opened(tmp_path / "data", world, clock)
    clock.turn(days=1)
    assert opened(tmp_path / "data", world, clock).authority.certificate == first.authority.certificate
    assert first.authority.tls([], clock.now).minimum_version.name == "TLSv1_2"


def test_a_request_passes_all_of_it(tmp_path: Path, world: Memory) -> None:
    found = opened(tmp_path, world, Clock())
    gate: Gate = found.identity
    kate = gate.authenticate(None, f"Bearer {add_token(tmp_path / 'tokens.json', 'kate')}", "kubectl/1")
    gate.authorize(kate, Attributes("list", "", "pods", "", "shop"))
    with pytest.raises(StatusError, match='User "kate" cannot list resource "pods" in API group "" at the cluster'):
        gate.authorize(kate, Attributes("list", "", "pods"))
    assert gate.impersonate(kate, [("Accept", "x")]) is kate
    with pytest.raises(StatusError, match='cannot impersonate resource "users"'):
        gate.impersonate(kate, [("Impersonate-User", "root")])
    gate.authorize(gate.authenticate(None, ""), Attributes("get", path="/healthz"))
    with pytest.raises(StatusError, match='forbidden: User "system:anonymous" cannot get path "/metrics"'):
        gate.authorize(gate.authenticate(None, ""), Attributes("get", path="/metrics"))
    found.identity.authorize(Caller("x", ("system:masters",)), Attributes("get", path="/metrics"))


def test_a_node_evicts_its_own_pods_only(tmp_path: Path, world: Memory) -> None:
    found = opened(tmp_path, world, Clock())

    async def evict(asked: CreateRequest) -> Object:
        return {"evicted": asked.target.name}

    guarded = restricted(CreateHandler(evict, "policy/v1", "Eviction"), found.restriction)
    alpha = Caller("system:node:alpha", ("system:nodes",))

    async def ask(pod: str, caller: Caller) -> Object:
        return await guarded.call(CreateRequest(Target(BY_KIND["v1", "Pod"], "shop", pod, "eviction"), {}, caller))

    assert asyncio.run(ask("web", alpha)) == {"evicted": "web"}
    assert asyncio.run(ask("other", Caller("root", ("system:masters",)))) == {"evicted": "other"}
    with pytest.raises(StatusError, match="node alpha can only evict pods"):
        asyncio.run(ask("other", alpha))


@pytest.mark.parametrize("name", ["tokens.json", "pki/revoked"])
def test_damage_is_told_at_the_start(tmp_path: Path, world: Memory, name: str) -> None:
    clock = Clock()
    opened(tmp_path, world, clock)
    (tmp_path / name).write_text("{zz")
    (tmp_path / name).chmod(0o600)
    clock.now += timedelta(seconds=1)
    with pytest.raises(IdentityError, match="is damaged") as raised:
        opened(tmp_path, world, clock)
    assert "\n" not in str(raised.value)
