"""Mutants that change no behaviour that a test could notice, each with the reason."""

from mutants.mutate import Mutant

EQUIVALENT: dict[tuple[str, str, str, str], str] = {
    (
        "core/engine/gang_scheduling.py",
        "yield Release(reservation, problem)",
        "continue",
        "pass",
    ): "the cycle carries out a Release before it asks for the next action, and then there is no such pod to evict",
}
"""By path, the line above, the lines before and the lines after."""


def key_of(mutant: Mutant) -> tuple[str, str, str, str]:
    return mutant.path, mutant.above, mutant.before, mutant.after


def reason_of(mutant: Mutant) -> str:
    return EQUIVALENT.get(key_of(mutant), "")
