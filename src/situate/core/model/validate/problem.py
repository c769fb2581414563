"""A validation problem, in the five forms of Kubernetes' field errors."""

from collections.abc import Iterable, Iterator

import msgspec

MAX_SHOWN = 120  # characters of a value that a message shows


class Problem(msgspec.Struct, frozen=True):
    path: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}"


Problems = Iterator[Problem]


def required(path: str, detail: str = "") -> Problem:
    return Problem(path, f"Required value: {detail}" if detail else "Required value")


def invalid(path: str, value: object, detail: str) -> Problem:
    return Problem(path, f"Invalid value: {_shown(value)}: {detail}")


def unsupported(path: str, value: str, supported: Iterable[str]) -> Problem:
    listed = ", ".join(f'"{one}"' for one in supported)
    return Problem(path, f"Unsupported value: {_shown(value)}: supported values: {listed}")


def forbidden(path: str, detail: str) -> Problem:
    return Problem(path, f"Forbidden: {detail}")


def duplicate(path: str, value: object) -> Problem:
    return Problem(path, f"Duplicate value: {_shown(value)}")


def at_key(path: str, key: str) -> str:
    """The path of a mapping's entry: `requests.cpu`, `requests[nvidia.com/gpu]`."""
    short = key if len(key) <= MAX_SHOWN else key[:MAX_SHOWN] + "..."
    return (
        f"{path}.{short}" if key.replace("-", "").replace("_", "").isalnum() and key.isascii() else f"{path}[{short}]"
    )


def _shown(value: object) -> str:
    """The value on one line, quoted if text, truncated if long."""
    if isinstance(value, str) and len(value) > MAX_SHOWN:
        value = value[:MAX_SHOWN] + "..."
    return msgspec.json.encode(value).decode()
