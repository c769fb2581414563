"""Objects of any kind, made up from the table."""

from random import Random
from typing import Any

from situate.wire.schema import Type, flat_fields, kinds, message

KINDS = tuple(kinds())

QUANTITIES = ("1", "100m", "1Gi", "1500m", "12k", "1e3", "5Mi", "-5")
NOISY_QUANTITIES = (*QUANTITIES, "0", "1000m", "1024Mi", "0.5", "1.5Gi", "1u", 5, 1.5, " 5 ", "00")
TIMES = ("2024-01-02T03:04:05Z", "1969-12-31T23:59:59Z")
NOISY_TIMES = (*TIMES, "2024-01-02T03:04:05.999Z", "2024-01-02T03:04:05+02:00", "0001-01-01T00:00:00Z")
MICRO_TIMES = ("2024-01-02T03:04:05.123456Z", "2024-01-02T03:04:05.000000Z")


def kind_of(random: Random, *, noisy: bool) -> dict[str, Any]:
    """An object of some kind. If noisy, with zero values, nulls, unknown fields and values to be written otherwise."""
    api_version, kind = random.choice(KINDS)
    made = message_of(random, kinds()[api_version, kind], noisy=noisy)
    return {"kind": kind, "apiVersion": api_version} | {
        name: value for name, value in made.items() if name not in ("kind", "apiVersion")
    }


def message_of(random: Random, name: str, *, noisy: bool, depth: int = 0) -> dict[str, Any]:
    made: dict[str, Any] = {}
    share = (0.7, 0.6, 0.4, 0.3)[depth] if depth < 4 else 0.1
    for field in flat_fields(message(name)):
        kind = field.type
        written = field.always and kind.form not in ("list", "map") and kind.name not in ("Time", "MicroTime", "Raw")
        if random.random() < share or (written and not noisy):
            value = _value(random, kind, noisy=noisy, zero=noisy or field.pointer or field.always, depth=depth + 1)
            if value is not None or noisy:
                made[field.name] = value
    if noisy and random.random() < 0.02:
        made["unheardOf"] = {"a": 1}
    return made


def _value(random: Random, kind: Type, *, noisy: bool, zero: bool, depth: int) -> Any:
    if noisy and random.random() < 0.02:
        return None
    if kind.form == "message":
        return message_of(random, kind.name, noisy=noisy, depth=depth)
    if kind.form in ("list", "map") and kind.of:
        count = random.choice((0, 1, 2)) if noisy else random.choice((1, 2))
        inside = [_value(random, kind.of, noisy=noisy, zero=True, depth=depth + 1) for _ in range(count)]
        return inside if kind.form == "list" else {f"k/{index}:": value for index, value in enumerate(inside)}
    return _leaf(random, kind.name, noisy=noisy, zero=zero)


def _leaf(random: Random, name: str, *, noisy: bool, zero: bool) -> Any:
    match name:
        case "string":
            return random.choice(("a", "b:c", 'é☃"', *([""] if zero else [])))
        case "bool":
            return random.choice((True, False)) if zero else True
        case "int32":
            return random.choice((1, -1, 2**31 - 1, -(2**31), *([0] if zero else [])))
        case "int64":
            return random.choice((1, -1, 2**63 - 1, -(2**63), *([0] if zero else [])))
        case "bytes":
            return random.choice(("YQ==", "YWI=", *([""] if zero else [])))
        case "Quantity" | "Amount":
            return random.choice(NOISY_QUANTITIES if noisy else QUANTITIES)
        case "IntOrString":
            return random.choice((80, "http", "50%", *([0] if zero else [])))
        case "Time":
            return random.choice(NOISY_TIMES if noisy else TIMES)
        case "MicroTime":
            return random.choice(MICRO_TIMES)
    return random.choice(({"a": 1}, {"f:metadata": {"f:labels": {".": {}}}}, {"a": None, "b": []}))
