"""Random selectors and devices: well-typed, ill-typed, odd and broken ones. The same seed gives the same lines.

`cel_grammar.txt` holds the forms of expressions.
"""

import re
from pathlib import Path
from random import Random
from typing import Any

DRIVERS = ("gpu.example.com", "net.example.com", "d")
DOMAINS = ("gpu.example.com", "net.example.com", "d")
NAMES = ("model", "count", "healthy", "version", "memory", "family", "size")
VERSIONS = ("1.2.3", "0.0.1", "10.20.30", "1.2.3-alpha.1", "1.2.3-beta", "1.0.0+build.5", "2.0.0-rc.1+x")
QUANTITIES = ("1", "0", "1Gi", "1024Mi", "500m", "1500m", "1e3", "40Gi", "-3", "1.5Gi", "100k", "0.5", "9E", "7Ei")

_PART = re.compile(r"⟨([a-z*?]+0?)((?: [a-z]+:[a-z]+)*)⟩|⟦([^⟧]*)⟧")
_GRAMMAR = Path(__file__).parent / "cel_grammar.txt"
_KINDS = (
    "int", "string", "list", "map", "any", "quantity", "bool", "double", "optional", "semver", "duration", "url", "ip",
)  # fmt: skip
_CHARACTERS = "()[]{}.,?:+-*/%!&|=<>'\"`@#$;\\^~ é日\t\n0aZ_"
_WORDS = (
    "in", "true", "null", "as", "if", "let", "package", "==", "&&", "||", "?", ":", ".?", "[?", "//", "'''", "0x", "1e",
    "1u",
)  # fmt: skip


def read_grammar() -> dict[str, list[str]]:
    forms: dict[str, list[str]] = {}
    for line in _GRAMMAR.read_text().splitlines():
        if line and not line.startswith("#"):
            kind, _, form = line.partition(" ")
            forms.setdefault(kind, []).append(form)
    return forms


class Expressions:
    """Draws expressions."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.forms = read_grammar()
        self.variables: list[tuple[str, str]] = []

    def expression(self) -> str:
        chance, depth = self.random.random(), self.random.choice((1, 2, 2, 3, 3, 4))
        if chance < 0.72:
            return self.of("bool", depth)
        if chance < 0.80:
            return self.of(self.random.choice(_KINDS), depth)
        if chance < 0.90:
            return self.fill(self.random.choice(self.forms["wrong"]), "bool", depth)
        return self.broken(self.of("bool", depth))

    def of(self, kind: str, depth: int) -> str:
        """An expression of a kind, nested at most so deep."""
        if kind == "?":
            kind = self.random.choice(_KINDS)
        short = kind.removesuffix("0")
        known = [name for name, of in self.variables if of == short]
        if known and self.random.random() < 0.35:
            return str(self.random.choice(known))
        if kind.endswith("0") or depth <= 0 or self.random.random() < 0.08:
            return self.fill(self.random.choice(self.forms[f"{short}0"]), short, 0)
        general = self.random.random() < 0.06
        return self.fill(self.random.choice(self.forms["*" if general else kind]), kind, depth - 1)

    def fill(self, form: str, kind: str, depth: int) -> str:
        def part(found: re.Match[str]) -> str:
            if found[3] is not None:
                return str(self.random.choice(found[3].split("¦")))
            names = [(name, of) for name, _, of in (pair.partition(":") for pair in found[2].split())]
            self.variables += names
            try:
                return self.of(kind if found[1] == "*" else found[1], depth)
            finally:
                del self.variables[len(self.variables) - len(names) :]

        return _PART.sub(part, form)

    def broken(self, text: str) -> str:
        """A text with a mistake: a character or token removed, doubled, changed or added."""
        at, other = (self.random.randrange(len(text) + 1) for _ in range(2))
        match self.random.randrange(7):
            case 0:
                return text[:at] + text[at + 1 :]
            case 1:
                return text[:at] + self.random.choice(_CHARACTERS) + text[at:]
            case 2:
                return text[:at]
            case 3:
                return f"{text[:at]} {self.random.choice(_WORDS)} {text[at:]}"
            case 4:
                return text[: min(at, other)] + text[max(at, other) :]
            case 5:
                odd = (
                    "(" * 3 + text,
                    text + ")" * 2,
                    f"{text} {text}",
                    f"\n\n{text}\n  +",
                    f"{text} // x",
                    f"\t{text} é",
                )
                return str(self.random.choice(odd))
        return text[at:] + text[:at]


def device(random: Random) -> dict[str, Any]:
    """A device as JSON, as a resource slice holds it."""
    driver = random.choice(DRIVERS)
    attributes: dict[str, Any] = {}
    for name in NAMES:
        for domain in random.sample(("", *DOMAINS), random.randrange(3)):
            if domain == driver:
                continue  # which of `name` and `driver/name` is seen is a matter of chance
            attributes[f"{domain}/{name}" if domain else name] = random.choice(
                (
                    {"int": random.choice((0, 1, 4, -7, 2**63 - 1))},
                    {"bool": random.random() < 0.5},
                    {"string": random.choice(("a100", "", "A100-SXM", "héllo", "1", "日本語"))},
                    {"version": random.choice(VERSIONS)},
                )
            )
    names = ("memory", "size") if driver == "d" else ("memory", "size", "d/memory")
    capacity = {name: {"value": random.choice(QUANTITIES)} for name in names if random.random() < 0.7}
    return {
        "driver": driver,
        "allowMultipleAllocations": random.random() < 0.3,
        "attributes": attributes,
        "capacity": capacity,
    }
