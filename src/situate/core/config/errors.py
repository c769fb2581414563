"""The error that a bad configuration raises."""

from collections.abc import Sequence


class ConfigError(Exception):
    """The configuration is invalid. `problems` has every problem, in order."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)
