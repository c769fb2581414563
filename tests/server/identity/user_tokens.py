"""Writes the file of user tokens, as an administrator does."""

import hashlib
import json
import secrets
from collections.abc import Sequence
from pathlib import Path


def add_token(path: Path, user: str, groups: Sequence[str] = (), uid: str = "") -> str:
    """A new token of the user."""
    token = secrets.token_urlsafe(32)
    entries = json.loads(path.read_text()) if path.exists() else []
    hashed = hashlib.sha256(token.encode()).hexdigest()
    _write(path, [*entries, {"sha256": hashed, "user": user, "groups": list(groups), "uid": uid}])
    return token


def remove_tokens(path: Path, user: str) -> None:
    _write(path, [one for one in json.loads(path.read_text()) if one["user"] != user])


def _write(path: Path, entries: list[dict[str, object]]) -> None:
    path.write_text(json.dumps(entries))
    path.chmod(0o600)
