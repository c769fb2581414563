"""The field errors that a validation of a strategy finds."""

from collections.abc import Callable

from situate.server.kinds.field_errors import Causes


def found_by(validate: Callable[..., None], *objects: object) -> Causes:
    causes = Causes()
    validate(*objects, causes)
    return causes
