"""Mutants that change no behaviour that a test could notice, each with the reason."""

from mutants.mutate import Mutant

EQUIVALENT: dict[tuple[str, str, str], str] = {}
"""By path, the lines before and the lines after."""


def reason_of(mutant: Mutant) -> str:
    return EQUIVALENT.get((mutant.path, mutant.before, mutant.after), "")
