"""How the agent of a node comes to its certificate: with a token once, and later by itself, to renew it."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Final

from situate.server.errors import StatusError, bad_request, forbidden
from situate.server.identity.authority import Authority
from situate.server.identity.node_authorizer import node_name_of
from situate.server.identity.secret_files import IdentityError
from situate.server.identity.token_files import JOIN_GROUP, JoinTokens
from situate.server.requests import Caller

__all__ = ["NodeJoin"]

NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
LONGEST_NAME: Final = 253
MOST_BYTES: Final = 16 * 1024


class NodeJoin:
    def __init__(self, authority: Authority, tokens: JoinTokens, *, clock: Callable[[], datetime]) -> None:
        self._authority = authority
        self._tokens = tokens
        self._clock = clock

    def sign(self, caller: Caller, node: str, request: bytes) -> bytes:
        """A certificate (PEM) for a node, by its signing request. A join token is used up by it.

        Raises 403 for others, and 400 for a request that is not right: that uses up nothing.
        """
        renewing = node_name_of(caller) == node
        if not renewing and JOIN_GROUP not in caller.groups:
            raise _refused(node, f'User "{caller.name}" may not join as this node')
        if len(node) > LONGEST_NAME or NAME.fullmatch(node) is None:
            raise bad_request(f'"{node[:LONGEST_NAME]}" is not the name of a node')
        if len(request) > MOST_BYTES:
            raise bad_request(f"a certificate signing request has at most {MOST_BYTES} bytes")
        now = self._clock()
        try:
            signed = self._authority.sign_node(request, node, now)
        except IdentityError as error:
            raise bad_request(str(error)) from error
        if not renewing and not self._tokens.spend(caller, now):
            raise _refused(node, "the join token was used already")
        return signed


def _refused(node: str, why: str) -> StatusError:
    return forbidden("nodes", "", node, why)
