"""Assignability of types and substitution of type parameters, as the checker decides them."""

from situate.core.cel.types import DYN, CelType, accepts, format_type, is_exact, list_of, map_of

_WITH_PARAMETERS = ("opaque", "list", "map", "type")
_NULLABLE_KINDS = ("opaque", "struct", "any", "duration", "timestamp")


class Substitutions:
    """What each type parameter stands for."""

    def __init__(self, known: dict[str, CelType] | None = None) -> None:
        self._known: dict[str, CelType] = {} if known is None else known

    def copy(self) -> "Substitutions":
        return Substitutions(dict(self._known))

    def add(self, parameter: CelType, stands_for: CelType) -> None:
        self._known[format_type(parameter)] = stands_for

    def find(self, value: CelType) -> CelType | None:
        return self._known.get(format_type(value)) if self._known else None

    def apply(self, value: CelType, unknown_is_dyn: bool) -> CelType:
        while (found := self.find(value)) is not None:
            value = found
        if unknown_is_dyn and value.kind == "param":
            return DYN
        if not value.parameters or value.kind not in _WITH_PARAMETERS:
            return value
        applied = tuple(self.apply(parameter, unknown_is_dyn) for parameter in value.parameters)
        match value.kind:
            case "list":
                return list_of(applied[0])
            case "map":
                return map_of(applied[0], applied[1])
        return CelType(value.kind, value.name, applied)

    def assignable(self, one: CelType, other: CelType) -> "Substitutions | None":
        """The substitutions under which the two agree, or None."""
        attempt = self.copy()
        return attempt if attempt._assign(one, other) else None

    def assignable_lists(self, ones: list[CelType], others: list[CelType]) -> "Substitutions | None":
        attempt = self.copy()
        return attempt if attempt._assign_all(ones, others) else None

    def _assign_all(
        self, ones: list[CelType] | tuple[CelType, ...], others: list[CelType] | tuple[CelType, ...]
    ) -> bool:
        return len(ones) == len(others) and all(map(self._assign, ones, others))

    def _assign(self, one: CelType, other: CelType) -> bool:
        if other.kind == "param":
            valid, known = self._substitute(one, other)
            if valid:
                return True
            if known:
                return False
        if one.kind == "param":
            return self._substitute(other, one)[0]
        if one.kind in ("dyn", "any", "error") or other.kind in ("dyn", "any", "error"):
            return True
        if "null" in (one.kind, other.kind):
            return _accepts_null(other if one.kind == "null" else one)
        if one.kind == other.kind == "type":
            return True
        if one.kind in ("opaque", "list", "map"):
            same = one.kind == other.kind and one.name == other.name
            return same and self._assign_all(one.parameters, other.parameters)
        return accepts(other, one)

    def _substitute(self, one: CelType, parameter: CelType) -> tuple[bool, bool]:
        """Whether the parameter may stand for the type, and whether it already stood for one."""
        if one.kind == parameter.kind and is_exact(one, parameter):
            return True, True
        known = self.find(parameter)
        if known is not None:
            if one.kind == known.kind and is_exact(one, known):
                return True, True
            if not self._assign(one, known):
                return False, True
            general = most_general(one, known)
            if self._absent(parameter, general):
                self.add(parameter, general)
            return True, True
        if self._absent(parameter, one):
            self.add(parameter, one)
            return True, False
        return False, False

    def _absent(self, parameter: CelType, within: CelType) -> bool:
        if is_exact(parameter, within):
            return False
        if within.kind == "param":
            known = self.find(within)
            return known is None or self._absent(parameter, known)
        if within.kind in _WITH_PARAMETERS:
            return all(self._absent(parameter, part) for part in within.parameters)
        return True


def most_general(one: CelType, other: CelType) -> CelType:
    return one if _equal_or_less_specific(one, other) else other


def _equal_or_less_specific(one: CelType, other: CelType) -> bool:
    if one.is_dynamic or one.kind == "param":
        return True
    if other.is_dynamic or other.kind == "param" or one.kind != other.kind:
        return False
    if one.kind == "type":
        return True
    if one.kind in ("opaque", "list", "map"):
        same = one.name == other.name and len(one.parameters) == len(other.parameters)
        return same and all(map(_equal_or_less_specific, one.parameters, other.parameters))
    return is_exact(one, other)


def _accepts_null(value: CelType) -> bool:
    return value.kind in _NULLABLE_KINDS or value.nullable
