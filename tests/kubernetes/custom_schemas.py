"""Random structural schemas, some of them broken, and objects that fit them or not."""

from __future__ import annotations

from random import Random
from typing import Any

Json = dict[str, Any]
NAMES = ("a", "b", "c", "list", "map", "x-y")
WORDS = ("", "a", "abc", "A1", "2026-01-02", "10.0.0.1", "x@example.com", "1h", "é", "true", "https://example.com/a")
FORMATS = (
    "date",
    "date-time",
    "ipv4",
    "ipv6",
    "cidr",
    "uuid",
    "byte",
    "duration",
    "hostname",
    "mac",
    "uri",
    "odd",
    "email",
)
PATTERNS = ("^a", "^[a-z]+$", "[0-9]{2,}", "(a|b)c?", ".")


class Schemas:
    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def chance(self, percent: int) -> bool:
        return self._random.randrange(100) < percent

    def pick(self, some: Any) -> Any:
        return self._random.choice(some)

    # -- schemas ------------------------------------------------------------------------------------------------------

    def whole(self) -> Json:
        properties = {name: self.schema(2) for name in self._random.sample(NAMES, self._random.randint(1, 4))}
        spec = {"type": "object", "properties": properties}
        if self.chance(30):
            spec["required"] = self._random.sample(sorted(properties), 1)
        return {"type": "object", "properties": {"spec": spec}}

    def schema(self, depth: int) -> Json:
        kinds = ["string", "integer", "number", "boolean"] + (
            ["object", "array", "map", "free", "ios"] if depth else []
        )
        kind = self.pick(kinds)
        made: Json = getattr(self, f"_{kind}")(depth)
        if self.chance(15):
            made["nullable"] = True
        if self.chance(12) and kind in ("string", "integer", "boolean", "number"):
            made["default"] = self.scalar(kind)
        if self.chance(6):
            made["anyOf"] = [self._values_only(kind), self._values_only(kind)]
        if self.chance(4):
            made[self.pick(("allOf", "oneOf"))] = [self._values_only(kind), self._values_only(kind)]
        if self.chance(3):
            made["not"] = self._values_only(kind)
        if self.chance(2):
            self._break(made)
        return made

    def _break(self, made: Json) -> None:
        match self._random.randrange(6):
            case 0:
                made.pop("type", None)
            case 1:
                made["type"] = "wrong"
            case 2:
                made["uniqueItems"] = True
            case 3:
                made["x-kubernetes-list-type"] = self.pick(("map", "set", "wrong"))
            case 4:
                made["pattern"] = "("
            case _:
                made["anyOf"] = [{"type": "string"}]

    def _values_only(self, kind: str) -> Json:
        some: tuple[Json, ...] = ({"minProperties": 1}, {})
        match kind:
            case "string":
                some = ({"minLength": 2}, {"pattern": "^a"}, {"enum": ["a", "abc"]}, {"maxLength": 1})
            case "integer" | "number":
                some = ({"minimum": 3}, {"maximum": 2}, {"multipleOf": 2})
            case "array":
                some = ({"minItems": 1},)
        return dict(self._random.choice(some))

    def _string(self, _depth: int) -> Json:
        made: Json = {"type": "string"}
        if self.chance(25):
            made["format"] = self.pick(FORMATS)
        if self.chance(20):
            made["maxLength"] = self._random.randint(0, 4)
        if self.chance(15):
            made["minLength"] = self._random.randint(0, 3)
        if self.chance(15):
            made["pattern"] = self.pick(PATTERNS)
        if self.chance(10):
            made["enum"] = ["a", "abc", "A1"]
        return made

    def _integer(self, _depth: int) -> Json:
        return self._ranged({"type": "integer"}, ("int32", "int64", "odd"))

    def _number(self, _depth: int) -> Json:
        return self._ranged({"type": "number"}, ("float", "double"))

    def _ranged(self, made: Json, formats: tuple[str, ...]) -> Json:
        if self.chance(20):
            made["format"] = self.pick(formats)
        if self.chance(25):
            made["minimum"] = self._random.randint(-2, 4)
        if self.chance(25):
            made["maximum"] = self._random.randint(-2, 6)
            if self.chance(30):
                made["exclusiveMaximum"] = True
        if self.chance(10):
            made["multipleOf"] = self.pick((2, 3))
        if self.chance(8):
            made["enum"] = [1, 2]
        return made

    def _boolean(self, _depth: int) -> Json:
        return {"type": "boolean"}

    def _object(self, depth: int) -> Json:
        names = self._random.sample(NAMES, self._random.randint(0, 3))
        made: Json = {"type": "object"}
        if names:
            made["properties"] = {name: self.schema(depth - 1) for name in names}
        if names and self.chance(30):
            made["required"] = names[:1]
        if self.chance(10):
            made["x-kubernetes-preserve-unknown-fields"] = True
        if self.chance(10):
            made["maxProperties"] = 2
        return made

    def _map(self, depth: int) -> Json:
        return {
            "type": "object",
            "additionalProperties": self.pick((True, self.schema(depth - 1), self.schema(depth - 1))),
        }

    def _free(self, _depth: int) -> Json:
        return {"x-kubernetes-preserve-unknown-fields": True}

    def _ios(self, _depth: int) -> Json:
        made: Json = {"x-kubernetes-int-or-string": True}
        if self.chance(40):
            made["anyOf"] = [{"type": "integer"}, {"type": "string"}]
        return made

    def _array(self, depth: int) -> Json:
        made: Json = {"type": "array", "items": self.schema(depth - 1)}
        if self.chance(20):
            made["maxItems"] = 2
        if self.chance(15):
            made["minItems"] = 1
        if self.chance(20):
            made["items"] = {"type": "string"}
            made["x-kubernetes-list-type"] = "set"
        elif self.chance(20):
            made["items"] = {
                "type": "object",
                "required": ["a"],
                "properties": {"a": {"type": "string"}, "b": self.schema(0)},
            }
            made |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]}
        return made

    # -- values -------------------------------------------------------------------------------------------------------

    def scalar(self, kind: str) -> Any:
        match kind:
            case "string":
                return self.pick(WORDS)
            case "integer":
                return self.pick((0, 1, 2, 3, -1, 2**31, 2**40))
            case "number":
                return self.pick((0, 1.5, 2, -0.25, 3))
            case _:
                return self.chance(50)

    def value(self, schema: Json, depth: int = 4) -> Any:
        if self.chance(8) or depth == 0:
            return self.pick((None, "abc", 1, 2.5, True, [], {}, ["a"], {"a": 1}))
        kind = schema.get("type", "")
        if schema.get("x-kubernetes-int-or-string"):
            return self.pick((1, "a", "10%"))
        if kind == "object":
            found = {
                name: self.value(one, depth - 1)
                for name, one in schema.get("properties", {}).items()
                if self.chance(75)
            }
            additional = schema.get("additionalProperties")
            if isinstance(additional, dict):
                found |= {name: self.value(additional, depth - 1) for name in ("k", "l") if self.chance(60)}
            if self.chance(15) or additional is True:
                found["junk"] = self.pick((1, {"a": {"b": 1}}, [{"c": 1}]))
            return found
        if kind == "array":
            return [self.value(schema.get("items", {}), depth - 1) for _ in range(self._random.randint(0, 3))]
        return self.scalar(kind) if kind else self.pick(("a", 1, {"b": {"c": None}}, [1]))
