"""The errors of patches, with their HTTP status."""

from typing import Any, Final, NamedTuple

BAD_REQUEST: Final = 400
CONFLICT: Final = 409
TOO_LARGE: Final = 413
UNPROCESSABLE: Final = 422

MAX_SHOWN: Final = 1_000  # characters of a client's own words in an answer


class PatchError(ValueError):
    """The patch cannot be applied. `str()` is the message of the Status, `status` its code."""

    def __init__(self, message: str, status: int = BAD_REQUEST) -> None:
        super().__init__(message)
        self.status = status


class UnmetTestError(PatchError):
    """An operation `test` of a JSON patch tests for what is not so."""


class Conflict(NamedTuple):
    """A field of another manager that would change."""

    manager: str
    """As in the message: `"kubectl-client-side-apply" using apps/v1`."""
    field: str
    """`.spec.replicas`"""


class ApplyConflictError(PatchError):
    """An apply without force would change fields of other managers."""

    def __init__(self, message: str, conflicts: tuple[Conflict, ...]) -> None:
        super().__init__(message, CONFLICT)
        self.conflicts = conflicts

    @property
    def causes(self) -> list[dict[str, str]]:
        """For the Status' details."""
        return [
            {"reason": "FieldManagerConflict", "message": f"conflict with {one.manager}", "field": one.field}
            for one in self.conflicts
        ]


def go_text(value: Any) -> str:
    """A decoded value as Go prints it, for Kubernetes' messages."""
    text = _go_text(value)
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "..."


def _go_text(value: Any) -> str:
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{_go_text(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(_go_text(item) for item in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "<nil>" if value is None else str(value)
