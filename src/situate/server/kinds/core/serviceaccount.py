"""ServiceAccounts. References to secrets keep only the name."""

from typing import Final

from situate.server.kinds.kind import Kind
from situate.server.kinds.strategy import Strategy
from situate.server.objects import Object


def _prepare(account: Object) -> None:
    if account.get("secrets"):
        account["secrets"] = [{"name": one["name"]} if one.get("name") else {} for one in account["secrets"]]


def _prepare_update(new: Object, _old: Object) -> None:
    _prepare(new)


KIND: Final = Kind(
    "v1 serviceaccounts ServiceAccount N sa - | token",
    strategy=Strategy(prepare_create=_prepare, prepare_update=_prepare_update),
    columns="Name!, Age",
    description="ServiceAccount is an identity for processes in pods.",
)
