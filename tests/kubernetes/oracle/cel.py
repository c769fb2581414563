"""Compares situate's CEL with cel-go on random selectors and devices: results, errors and costs.

    python -m kubernetes.oracle.cel --count 20000 --seed 7

What differs is printed. The same seed asks the same questions.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from kubernetes.oracle.cel_expressions import Expressions, device
from situate.core.cel.device_selectors import AttributeValue, DeviceView, Version, compile_selector
from situate.core.cel.errors import CompileError, EvaluationError
from situate.core.cel.libraries.quantity import Quantity

ORACLE = Path(__file__).parent / "oracle"
MAX_SHOWN = 40
AGAIN = 24  # how often a question is asked again

Answer = dict[str, Any]


def questions(seed: str, count: int) -> Iterator[Answer]:
    random = Random(seed)
    expressions = Expressions(random)
    devices = [device(random) for _ in range(40)]
    for _ in range(count):
        yield {"expression": expressions.expression(), "device": random.choice(devices)}


def view(given: Answer) -> DeviceView:
    attributes: dict[str, AttributeValue] = {}
    for name, attribute in given["attributes"].items():
        ((kind, value),) = attribute.items()
        attributes[name] = Version(value) if kind == "version" else value
    capacity = {name: Quantity.parse(one["value"]) for name, one in given["capacity"].items()}
    return DeviceView(given["driver"], attributes, capacity, given["allowMultipleAllocations"])


def ask_situate(question: Answer) -> Answer:
    dynamic = question.get("listAttributes", False)
    try:
        selector = compile_selector(question["expression"], dynamic_attributes=dynamic)
    except CompileError as error:
        return {"compileError": str(error)}
    try:
        matches, cost = selector.evaluate(view(question["device"]))
    except EvaluationError as error:
        return {"runtimeError": str(error), "cost": error.cost}
    return {"matches": matches, "cost": cost}


def ask_cel_go(asked: Iterable[Answer]) -> list[Answer]:
    lines = "".join(json.dumps(question) + "\n" for question in asked)
    done = subprocess.run([ORACLE, "-cel"], input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def is_panic(answer: Answer) -> bool:
    """Whether cel-go has no answer, but panics while it compiles."""
    return str(answer.get("compileError", "")).startswith("panic: ")


def differs(ours: Answer, theirs: Answer) -> bool:
    return ours != {key: value for key, value in theirs.items() if key != "type"}


def is_chance(question: Answer, ours: Answer) -> bool:
    """Whether cel-go gives our answer too when it is asked again: the order of a map's keys is random there."""
    return any(not differs(ours, again) for again in ask_cel_go([question] * AGAIN))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--file", type=Path, help="questions of your own: JSON lines")
    arguments = parser.parse_args()
    if arguments.file:
        asked = [json.loads(line) for line in arguments.file.read_text().splitlines()]
    else:
        asked = list(questions(arguments.seed, arguments.count))
    theirs = ask_cel_go(asked)
    tally: dict[str, int] = {}
    different: list[tuple[Answer, Answer, Answer]] = []
    for question, expected in zip(asked, theirs, strict=True):
        kind = next((name for name in ("compileError", "runtimeError", "matches") if name in expected), "none")
        tally[kind] = tally.get(kind, 0) + 1
        if is_panic(expected):
            continue
        try:
            ours = ask_situate(question)
        except Exception as error:  # noqa: BLE001  (whatever it is, it is a difference)
            ours = {"crash": repr(error)}
        if differs(ours, expected):
            different.append((question, ours, expected))
    different = [one for one in different if not is_chance(one[0], one[1])]
    for question, ours, expected in islice(different, MAX_SHOWN):
        print(json.dumps({"question": question, "situate": ours, "cel-go": expected}, ensure_ascii=False, indent=1))
    print(f"seed {arguments.seed}: {len(asked)} selectors {tally}: {len(different)} differ", file=sys.stderr)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
