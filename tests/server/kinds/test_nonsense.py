"""Objects spoiled at random, several times: whatever they say, the answer is yes or a list of what is wrong."""

import copy
import random
from collections.abc import Iterator
from typing import Any

import pytest

from server.kinds.answering import created, stored, updated
from server.kinds.corpus import Json, bases
from situate.server.kinds import STRATEGIES
from situate.wire.schema import DecodeError

TEXTS = ("", "A b", "x", "None", "0", "-1", "1.5Gi", "..", "a" * 300, "\n", "é", "::1", "Exists", "Always", "windows")
NUMBERS = (0, -1, 1, 65_536, 2**31 - 1)
OBJECTS = 60
BASES = bases()


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path and path != ("metadata",):
        yield path
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        if path or key not in ("apiVersion", "kind"):
            yield from places(value[key], (*path, key))


def spoil(obj: Json, dice: random.Random) -> None:
    found = list(places(obj))
    if not found:
        return
    *way, last = dice.choice(found)
    inside: Any = obj
    for step in way:
        inside = inside[step]
    value = inside[last]
    if dice.random() < 0.2:
        del inside[last]
    elif isinstance(value, dict):
        inside[last] = {}
    elif isinstance(value, list):
        inside[last] = [*value, *copy.deepcopy(value[:1])] if dice.random() < 0.5 else []
    elif isinstance(value, bool):
        inside[last] = not value
    else:
        inside[last] = dice.choice(NUMBERS if isinstance(value, int) else TEXTS)


def spoiled(obj: Json, dice: random.Random) -> Json:
    obj = copy.deepcopy(obj)
    for _ in range(dice.randint(1, 6)):
        spoil(obj, dice)
    return obj


@pytest.mark.parametrize("base", BASES)
def test_nonsense_is_answered_and_never_an_error_of_ours(base: str) -> None:
    strategy, dice = STRATEGIES["/" + BASES[base]["kind"]], random.Random(base)
    codes = set()
    for _ in range(OBJECTS):
        for verb in ("create", "update", "status"):
            try:
                if verb == "create":
                    answer = created(spoiled(BASES[base], dice), strategy)
                else:
                    answer = updated(spoiled(stored(base), dice), stored(base), strategy, verb)
            except DecodeError:
                continue
            codes.add(answer["code"])
            assert all(field is not None and message for field, message in answer.get("causes", ()))
    assert codes == {200, 201, 422}
