import pytest

from server.identity.memory import Memory
from situate.server.errors import StatusError
from situate.server.identity.authorization.attributes import forbidden_error
from situate.server.identity.authorization.authorization import Authorization
from situate.server.identity.impersonation import MOST, impersonate
from situate.server.requests import Caller

ROOT = Caller("root", ("system:masters",), agent="kubectl/1")
PAUL = Caller("paul", ("system:authenticated",))
"""He may speak for jane, and give her scopes; the small cluster says so."""


def spoken(world: Memory, caller: Caller, *headers: tuple[str, str]) -> Caller:
    authorization = Authorization(world)

    def authorize(who: Caller, asked: object) -> None:
        decision = authorization.allows(who, asked)  # type: ignore[arg-type]
        if not decision.allowed:
            raise forbidden_error(who, asked, decision.reason)  # type: ignore[arg-type]

    return impersonate(caller, headers, authorize)


def test_without_headers_everybody_is_themselves(world: Memory) -> None:
    assert spoken(world, PAUL, ("Accept", "application/json")) is PAUL


def test_a_user_is_authenticated_unless_it_is_said_otherwise(world: Memory) -> None:
    found = spoken(world, ROOT, ("Impersonate-User", "jane"))
    assert (found.name, found.groups, found.agent) == ("jane", ("system:authenticated",), "kubectl/1")
    found = spoken(world, ROOT, ("impersonate-user", "jane"), ("IMPERSONATE-GROUP", "a"), ("Impersonate-Group", "b"))
    assert found.groups == ("a", "b", "system:authenticated")
    found = spoken(world, ROOT, ("Impersonate-User", "system:anonymous"))
    assert found.groups == ("system:unauthenticated",)


def test_an_account_comes_with_its_groups(world: Memory) -> None:
    found = spoken(world, ROOT, ("Impersonate-User", "system:serviceaccount:shop:web-account"))
    assert found.groups == ("system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated")


def test_uid_and_extra_come_along(world: Memory) -> None:
    found = spoken(
        world,
        ROOT,
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Extra-Scopes", "a"),
        ("Impersonate-Extra-Scopes", "b"),
        ("Impersonate-Extra-Example.com%2fx", "c"),
    )
    assert found.uid == "7"
    assert found.extra == {"scopes": ("a", "b"), "example.com/x": ("c",)}


def test_whoever_may_speak_for_one_may_not_for_others(world: Memory) -> None:
    assert spoken(world, PAUL, ("Impersonate-User", "jane")).name == "jane"
    assert spoken(world, PAUL, ("Impersonate-User", "jane"), ("Impersonate-Extra-Scopes", "x")).extra


@pytest.mark.parametrize(
    "header, text",
    [
        (("Impersonate-User", "root"), 'users "root" is forbidden: User "paul" cannot impersonate resource "users"'),
        (("Impersonate-Group", "system:masters"), 'groups "system:masters" is forbidden'),
        (("Impersonate-Uid", "1"), 'uids.authentication.k8s.io "1" is forbidden'),
        (("Impersonate-Extra-Other", "1"), 'cannot impersonate resource "userextras/other"'),
        (("Impersonate-User", "system:serviceaccount:shop:web-account"), 'serviceaccounts "web-account" is forbidden'),
    ],
)
def test_each_header_is_checked(world: Memory, header: tuple[str, str], text: str) -> None:
    headers = [header] if header[0] == "Impersonate-User" else [("Impersonate-User", "jane"), header]
    with pytest.raises(StatusError) as raised:
        spoken(world, PAUL, *headers)
    assert raised.value.code == 403
    assert text in raised.value.message


def test_groups_of_nobody_are_refused(world: Memory) -> None:
    for header in ("Impersonate-Group", "Impersonate-Uid", "Impersonate-Extra-X"):
        with pytest.raises(StatusError, match="without impersonating a user") as raised:
            spoken(world, ROOT, (header, "x"))
        assert raised.value.code == 400


def test_there_is_an_end_to_what_can_be_claimed(world: Memory) -> None:
    many = [("Impersonate-Group", f"g{number}") for number in range(MOST)]
    with pytest.raises(StatusError, match="more than 512"):
        spoken(world, ROOT, ("Impersonate-User", "jane"), *many)


@pytest.mark.parametrize("header", ["Impersonate-User", "Impersonate-Group", "Impersonate-Uid", "Impersonate-Extra-A"])
def test_what_is_not_unicode_is_refused(world: Memory, header: str) -> None:
    with pytest.raises(StatusError) as refused:
        spoken(world, PAUL, (header, "\udcff"), ("Impersonate-User", "jane"))
    assert refused.value.code == 400


def test_as_much_as_the_limit_can_be_claimed(world: Memory) -> None:
    groups = [("Impersonate-Group", f"g{number}") for number in range(MOST - 3)]
    extras = [("Impersonate-Extra-Scopes", value) for value in ("a", "b")]
    assert len(spoken(world, ROOT, ("Impersonate-User", "jane"), *groups, *extras).groups) == MOST - 2
    with pytest.raises(StatusError, match="more than 512"):
        spoken(world, ROOT, ("Impersonate-User", "jane"), *groups, *extras, ("Impersonate-Extra-Scopes", "c"))


def test_of_two_users_and_uids_the_first_counts_and_a_group_counts_once(world: Memory) -> None:
    twice = [(f"Impersonate-{what}", value) for what in ("User", "Uid", "Group") for value in ("a", "b", "a")]
    found = spoken(world, ROOT, *twice)
    assert (found.name, found.uid, found.groups) == ("a", "a", ("a", "b", "system:authenticated"))


@pytest.mark.parametrize(
    "user, groups, expected",
    [
        ("jane", ["system:authenticated"], ("system:authenticated",)),
        ("jane", ["system:unauthenticated"], ("system:unauthenticated",)),
        ("system:anonymous", ["system:unauthenticated"], ("system:unauthenticated",)),
        ("system:anonymous", ["a"], ("a", "system:unauthenticated")),
        ("system:serviceaccount:shop:x", ["a"], ("a", "system:authenticated")),
        ("system:serviceaccount:shop", [], ("system:authenticated",)),
        ("system:serviceaccount::x", [], ("system:authenticated",)),
        ("system:serviceaccount:shop:", [], ("system:authenticated",)),
        ("system:serviceaccount:shop:x:y", [], ("system:authenticated",)),
    ],
)
def test_groups_are_completed(world: Memory, user: str, groups: list[str], expected: tuple[str, ...]) -> None:
    headers = [("Impersonate-User", user), *(("Impersonate-Group", group) for group in groups)]
    assert spoken(world, ROOT, *headers).groups == expected
