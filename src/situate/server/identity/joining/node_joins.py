"""Answers NodeJoins: signs the certificate of a node, `system:node:<name>` in `system:nodes`.

Who asks decides what is checked: a node renews its own certificate only, the holder of a bootstrap token uses the token
up, and anybody else whom RBAC allows to create NodeJoins is an administrator.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final, Protocol

from situate.server.errors import Cause, StatusError, forbidden, invalid
from situate.server.http.ports import CreateHandler, CreateHandlers, CreateRequest
from situate.server.identity.authorization.node_authorizer import NODES, node_name_of
from situate.server.identity.authorization.node_authorizer import USER as NODE_USER
from situate.server.identity.joining.bootstrap_tokens import GROUP, NAMESPACE, PREFIX, SECRETS, USER, BootstrapTokens
from situate.server.identity.pki.authority import Authority
from situate.server.identity.pki.certificates import pem, requested_key
from situate.server.identity.ports import ObjectReader, resource_of
from situate.server.identity.secret_files import IdentityError
from situate.server.kinds.names import subdomain
from situate.server.requests import SYSTEM, Caller, DeleteOptions, Object, Target

API_GROUP: Final = "situate.dev"
API_VERSION: Final = "situate.dev/v1alpha1"
KIND: Final = "NodeJoin"
PLURAL: Final = "nodejoins"
MAX_REQUEST_BYTES: Final = 16 * 1024
NODE_OBJECTS: Final = resource_of("v1", "nodes")

USED: Final = "the token has already been used"
OTHER_NODE: Final = 'the token is for node "{}"'
OWN_ONLY: Final = 'node "{}" can only renew its own certificate'
EXISTS: Final = "the node already exists; `situate token create --node {}` makes a token with which it can join again"


class JoinRegistry(Protocol):
    """The part of the registry that joining needs."""

    @property
    def cache(self) -> ObjectReader: ...

    async def delete(self, target: Target, caller: Caller, options: DeleteOptions) -> Any: ...


class NodeJoins:
    def __init__(self, authority: Authority, registry: JoinRegistry, clock: Callable[[], datetime]) -> None:
        self._authority = authority
        self._registry = registry
        self._clock = clock
        self._tokens = BootstrapTokens(registry.cache)

    def handlers(self) -> CreateHandlers:
        async def call(request: CreateRequest) -> Object:
            return await self.create(request.body, request.caller, dry_run=request.dry_run)

        return {(API_GROUP, PLURAL, ""): CreateHandler(call, API_VERSION, KIND)}

    async def create(self, join: Object, caller: Caller, *, dry_run: bool = False) -> Object:
        """The NodeJoin with the certificate. The caller must be authorized."""
        spec = join.get("spec") or {}
        node, request = spec.get("nodeName", ""), spec.get("request", "")
        if wrong := subdomain(node):
            causes = [Cause("spec.nodeName", f'Invalid value: "{node[:253]}": {why}') for why in wrong]
            raise invalid(KIND, API_GROUP, node[:253], causes)
        try:
            if len(request) > MAX_REQUEST_BYTES:
                raise IdentityError(f"may not be longer than {MAX_REQUEST_BYTES} bytes")
            key = requested_key(request.encode())
        except IdentityError as error:
            raise invalid(KIND, API_GROUP, node, [Cause("spec.request", f"Invalid value: {error}")]) from None
        own = node_name_of(caller)
        if own is not None and own != node:
            raise _refused(node, OWN_ONLY.format(own))
        if not dry_run and GROUP in caller.groups:
            await self._use_up(caller, node)
        status = {}
        if not dry_run:
            made = self._authority.sign(NODE_USER + node, (NODES,), key, self._clock())
            status = {"certificate": pem(made).decode(), "certificateAuthority": self._authority.bundle.decode()}
        return {**join, "status": status}

    async def _use_up(self, caller: Caller, node: str) -> None:
        """Use the token up before signing anything: of several requests, the one that deletes the Secret joins."""
        token = self._tokens.token(caller.name.removeprefix(USER))
        if token is None:
            raise _refused(node, USED)
        if token.node not in ("", node):
            raise _refused(node, OTHER_NODE.format(token.node))
        if not token.node and self._registry.cache.get(NODE_OBJECTS, "", node) is not None:
            # Otherwise a new machine could take over an existing node.
            raise _refused(node, EXISTS.format(node))
        try:
            await self._registry.delete(
                Target(SECRETS, NAMESPACE, PREFIX + token.id), SYSTEM, DeleteOptions(uid=token.uid)
            )
        except StatusError as error:
            if error.code in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
                raise _refused(node, USED) from None
            raise


def _refused(node: str, why: str) -> StatusError:
    return forbidden("nodes", "", node, why)
