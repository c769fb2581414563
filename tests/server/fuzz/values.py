"""Odd and extreme values for each type of the schema."""

import random
import re
from functools import cache
from pathlib import Path
from typing import Any

import situate
from situate.wire.schema.table import Field, Message, Type, flat_fields, message

RAW = "@raw:"
"""Text that begins with this is written without quotes: numbers that Python's encoder cannot write."""

INTEGERS: tuple[Any, ...] = (0, 1, -1, 2, 3, 100, 101, 500, 65535, 65536, 2**31 - 1, -(2**31))
LARGE: tuple[Any, ...] = (
    2**31, 9_223_372_036, 9_223_372_037, 253_402_300_799, 253_402_300_800, -62_135_596_801, 3 * 10**11, 2**53 + 1,
    2**62, 2**63 - 1, -(2**63),
)  # fmt: skip
NO_INTEGERS: tuple[Any, ...] = (2**63, -(2**63) - 1, 10**400, 1.5, f"{RAW}1e3", f"{RAW}1e400", "5", True, None, [], {})
DIGITS = "9" * 5_000
"""More than Python's own int converts."""
TEXTS: tuple[Any, ...] = (
    "", "a", "A", "-", ".", "..", "/", "a/b/c", "*", "%", "0", "-1", "1_0", " 1", "1e400", "NaN", "null", "true",
    "\u0663", "\u00b2", "\u00e9", "e\u0301", "\U0001f600", "\u202e", "\ufeff", "\x7f", "\n", "a\nb", "\r\n", "\t",
    "\0", "a\0b", "\ud800", DIGITS, f"-{DIGITS}", "a" * 63, "a" * 64, "a" * 253, "a" * 254, "x" * 5_000, "a." * 130,
    "../../etc/passwd", "/" * 300, "$(A)", "{}", "[", '"', "'", "\\", "2147483648", "9223372036854775808", "0x10",
    "node-01", "default", "kube-system", "a=b", "a in (b)", "!a", ",", "=", ";", "2026-01-01T00:00:00Z",
)  # fmt: skip
QUANTITIES: tuple[Any, ...] = (
    "0", "1", "-1", "100m", "1e30", "1e31", "1e-30", "9" * 64, "9" * 65, DIGITS, "9223372036854775807",
    "9223372036854775808", "1Ei", "999999Ei", "1n", "0.0000000001", "1.5.5", "", ".", "5E", "1e+", "NaN", "Inf", "0x10",
    "\u0663", " 1", "1 Gi", "-9223372036854775809", "1e99999999999", 1, 1.5, 10**30, f"{RAW}1e400", True, None, [], {},
)  # fmt: skip
PORTIONS: tuple[Any, ...] = (
    "0%", "1%", "25%", "100%", "101%", "-1%", "%", "1", "5%%", " 5%", "\u0663%", f"{DIGITS}%", "0" * 5_000 + "%",
    "2147483648%", "9223372036854775808%", "http", "",
)  # fmt: skip
TIMES: tuple[Any, ...] = (
    "0001-01-01T00:00:00Z", "0001-01-01T00:00:01Z", "0001-01-01T00:00:00+14:00", "0000-01-01T00:00:00Z",
    "1969-12-31T23:59:59Z", "1970-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "2038-01-19T03:14:08Z",
    "9999-12-31T23:59:59Z", "9999-12-31T23:59:59-23:59", "10000-01-01T00:00:00Z", "2026-02-30T00:00:00Z",
    "2026-01-01T00:00:60Z", "2026-01-01T24:00:00Z", "2026-01-01T00:00:00.999999999Z", "2026-01-01t00:00:00z",
    "2026-01-01 00:00:00Z", "2026-01-01T00:00:00", "", "-1", 0, 1.5, None, "\u0663026-01-01T00:00:00Z",
)  # fmt: skip
MICRO_TIMES: tuple[Any, ...] = (
    *(text.replace("Z", ".000000Z") for text in TIMES if isinstance(text, str)), "2026-01-01T00:00:00.123456Z",
    "2026-01-01T00:00:00Z", None, 0,
)  # fmt: skip
MANY = 1_000
TEXT_SIZE = 200_000
DEPTH = 150


def nested(depth: int) -> Any:
    found: Any = {}
    for _ in range(depth):
        found = {"a": [found]}
    return found


FREE: tuple[Any, ...] = (
    {}, [], None, "x", True, 0, 2**63 - 1, 2**63, 1.7e308, f"{RAW}1e400", nested(3), nested(DEPTH), {"": {"": ""}},
    {"spec": None}, {"spec": {"template": 5}}, {"\0": 1},
)  # fmt: skip

_KEY = re.compile(r'"([a-z0-9.-]+\.(?:io|dev|com)/[A-Za-z0-9._-]+)"')


@cache
def known_keys() -> tuple[str, ...]:
    """Every label and annotation that the source names: some of them are read as numbers, times or JSON."""
    found: set[str] = set()
    for path in sorted(Path(situate.__file__).parent.rglob("*.py")):
        found.update(_KEY.findall(path.read_text()))
    return tuple(sorted(found))


class Values:
    """Draws values. The same dice give the same values."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice

    def odd(self, kind: Type, name: str) -> Any:
        """An odd or extreme value for a field of this type."""
        dice = self._dice
        if kind.form == "list" and kind.of is not None:
            return self._list(kind.of)
        if kind.form == "map" and kind.of is not None:
            return self._map(kind.of, name)
        if kind.form == "message":
            return dice.choice((None, {}, [], "x", 5, minimal(kind), self.full(kind)))
        return self._special(kind) if kind.form == "special" else self._scalar(kind)

    def _scalar(self, kind: Type) -> Any:
        dice = self._dice
        if kind.name in ("int32", "int64"):
            return dice.choice(INTEGERS if dice.random() < 0.6 else LARGE if dice.random() < 0.7 else NO_INTEGERS)
        if kind.name == "bool":
            return dice.choice((True, False, True, False, None, "true", 1))
        if kind.name == "bytes":
            return dice.choice(("", "AA==", "aGVsbG8=", "=", "a", "\n", "A" * 4_000, "/w==", "____", None))
        if kind.values and dice.random() < 0.8:
            return dice.choice(kind.values)
        if dice.random() < 0.02:
            return "x" * TEXT_SIZE
        return dice.choice(TEXTS) if dice.random() < 0.97 else dice.choice((None, 5, {}, []))

    def _special(self, kind: Type) -> Any:
        dice = self._dice
        if kind.name == "IntOrString":
            return dice.choice(PORTIONS if dice.random() < 0.5 else (*INTEGERS, *LARGE[:1], 1.5, None, True))
        choices = {
            "Quantity": QUANTITIES,
            "Amount": QUANTITIES,
            "Time": TIMES,
            "MicroTime": MICRO_TIMES,
            "Raw": FREE,
            "Free": FREE,
        }
        return dice.choice(choices[kind.name])

    def _list(self, of: Type) -> Any:
        dice = self._dice
        one = minimal(of)
        choices: tuple[Any, ...] = (
            None,
            [],
            [one],
            [one, one],
            [None],
            [one, None],
            {},
            "x",
            [self.odd(of, "")],
            [self.odd(of, ""), one],
        )
        return [one] * MANY if dice.random() < 0.02 else dice.choice(choices)

    def _map(self, of: Type, name: str) -> Any:
        dice = self._dice
        if name in ("labels", "annotations", "matchLabels", "nodeSelector") and dice.random() < 0.7:
            keys = dice.sample(known_keys(), dice.randint(1, 3))
            values = (DIGITS, "\u0663", "-1", "2147483647", "9223372036854775807", "0", "", "{}", "x", "1.5", "true")
            wide = name == "annotations"
            return {
                key: dice.choice(TEXTS if wide and dice.random() < 0.3 else values if wide else values[1:])
                for key in keys
            }
        one = minimal(of)
        if dice.random() < 0.02:
            return {f"k{number}": one for number in range(MANY)}
        texts = [text for text in TEXTS if isinstance(text, str)]
        choices: tuple[Any, ...] = (
            None,
            {},
            {"k": one},
            {"k": None},
            {dice.choice(texts): one},
            {"k": self.odd(of, "")},
            [],
            "x",
        )
        return dice.choice(choices)

    def full(self, kind: Type) -> Any:
        """A message with most of its fields."""
        found = {}
        for field in flat_fields(message(kind.name)):
            if self._dice.random() < 0.7:
                found[field.name] = minimal(field.type)
        return found


PLAIN: dict[str, Any] = {
    "core.v1.Container": {"name": "c2", "image": "i:1"},
    "core.v1.EphemeralContainer": {"name": "e", "image": "i:1"},
    "core.v1.Volume": {"name": "v"},
    "core.v1.VolumeMount": {"name": "v", "mountPath": "/v"},
    "core.v1.EnvVar": {"name": "A"},
    "core.v1.ContainerPort": {"containerPort": 80},
    "core.v1.ServicePort": {"port": 80},
    "core.v1.Toleration": {"operator": "Exists"},
    "core.v1.Taint": {"key": "k", "effect": "NoSchedule"},
    "core.v1.NodeSelectorRequirement": {"key": "k", "operator": "Exists"},
    "core.v1.NodeSelectorTerm": {"matchExpressions": [{"key": "k", "operator": "Exists"}]},
    "core.v1.PodAffinityTerm": {"topologyKey": "kubernetes.io/hostname"},
    "core.v1.TopologySpreadConstraint": {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"},
    "core.v1.PersistentVolumeClaim": {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    },
    "meta.v1.LabelSelectorRequirement": {"key": "app", "operator": "Exists"},
    "meta.v1.OwnerReference": {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"},
    "meta.v1.LabelSelector": {},
    "meta.v1.ManagedFieldsEntry": {
        "manager": "m",
        "operation": "Update",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {}},
    },
    "meta.v1.Condition": {
        "type": "T",
        "status": "True",
        "reason": "R",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    },
    "batch.v1.PodFailurePolicyRule": {
        "action": "Ignore",
        "onExitCodes": {"operator": "In", "values": [1]},
    },
    "batch.v1.SuccessPolicyRule": {"succeededCount": 1},
}
"""Messages for which a value in each required field would not be valid."""


def minimal(kind: Type) -> Any:
    """A small value of a type, valid wherever that is easy."""
    if kind.form == "list" and kind.of is not None:
        return [minimal(kind.of)]
    if kind.form == "map" and kind.of is not None:
        return {"k": minimal(kind.of)}
    if kind.form == "message":
        return _plain(kind)
    if kind.form == "special":
        times = {"Time": "2026-01-01T00:00:00Z", "MicroTime": "2026-01-01T00:00:00.000000Z"}
        return {"Quantity": "1", "Amount": "1", "IntOrString": 1, **times, "Raw": {}, "Free": {}}[kind.name]
    return {"string": kind.values[0] if kind.values else "x", "bool": True, "bytes": "eA=="}.get(kind.name, 1)


def _plain(kind: Type) -> Any:
    known = PLAIN.get(kind.name)
    if known is not None:
        return dict(known)
    return {field.name: minimal(field.type) for field in flat_fields(message(kind.name)) if _needed(field)}


def _needed(field: Field) -> bool:
    return field.required and field.type.form != "message"


def fields_of(one: Message) -> list[Field]:
    return [field for field in flat_fields(one) if field.name not in ("kind", "apiVersion")]
