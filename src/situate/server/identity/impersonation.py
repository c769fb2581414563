"""The Impersonate- headers: each is authorized on its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final
from urllib.parse import unquote

from situate.server.errors import bad_request
from situate.server.identity.authorization.attributes import Attributes
from situate.server.identity.tokens.service_account_tokens import account_groups
from situate.server.requests import Caller

USER: Final = "impersonate-user"
GROUP: Final = "impersonate-group"
UID: Final = "impersonate-uid"
EXTRA: Final = "impersonate-extra-"
AUTHENTICATION: Final = "authentication.k8s.io"
ANONYMOUS: Final = "system:anonymous"
AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
ACCOUNT: Final = "system:serviceaccount:"
MOST: Final = 512
"""Users, groups and extras in one request: each costs a decision."""


def impersonate(
    caller: Caller, headers: Iterable[tuple[str, str]], authorize: Callable[[Caller, Attributes], None]
) -> Caller:
    """The user that the headers name, or the caller. `authorize` raises where the caller may not."""
    user, uid, groups, extra = _read(headers)
    if not user:
        if uid or groups or extra:
            raise bad_request("requested a group, uid or extra without impersonating a user")
        return caller
    if 1 + len(groups) + sum(map(len, extra.values())) > MOST:
        raise bad_request(f"requested more than {MOST} users, groups and extras to impersonate")
    namespace, account = _account(user)
    if account:
        authorize(caller, Attributes("impersonate", "", "serviceaccounts", "", namespace, account))
    else:
        authorize(caller, Attributes("impersonate", "", "users", "", "", user))
    for group in groups:
        authorize(caller, Attributes("impersonate", "", "groups", "", "", group))
    for key, values in extra.items():
        for value in values:
            authorize(caller, Attributes("impersonate", AUTHENTICATION, "userextras", key, "", value))
    if uid:
        authorize(caller, Attributes("impersonate", AUTHENTICATION, "uids", "", "", uid))
    if account and not groups:
        groups = list(account_groups(namespace))
    kept = {key: tuple(values) for key, values in extra.items()}
    return Caller(user, _completed(user, groups), uid, kept, caller.agent)


def _read(headers: Iterable[tuple[str, str]]) -> tuple[str, str, list[str], dict[str, list[str]]]:
    user = uid = ""
    groups: dict[str, None] = {}
    extra: dict[str, list[str]] = {}
    for name, value in headers:
        lower = name.lower()
        if lower == USER:
            user = user or value
        elif lower == GROUP:
            groups[value] = None
        elif lower == UID:
            uid = uid or value
        elif lower.startswith(EXTRA):
            extra.setdefault(unquote(lower[len(EXTRA) :]), []).append(value)
    try:
        "".join((user, uid, *groups, *(value for values in extra.values() for value in values))).encode()
    except UnicodeEncodeError:
        raise bad_request("the Impersonate- headers of the request are not UTF-8") from None
    return user, uid, list(groups), extra


def _account(user: str) -> tuple[str, str]:
    """Namespace and name of a service account's user; else ""."""
    if not user.startswith(ACCOUNT):
        return "", ""
    namespace, parted, name = user[len(ACCOUNT) :].partition(":")
    return (namespace, name) if parted and namespace and name and ":" not in name else ("", "")


def _completed(user: str, groups: list[str]) -> tuple[str, ...]:
    if user == ANONYMOUS:
        return (*groups,) if UNAUTHENTICATED in groups else (*groups, UNAUTHENTICATED)
    if AUTHENTICATED in groups or UNAUTHENTICATED in groups:
        return (*groups,)
    return (*groups, AUTHENTICATED)
