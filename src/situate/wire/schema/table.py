"""The table of messages, which is in groups/ and parsed on first use.

A line has a message; `kind` marks those of kinds. Fields are separated by semicolons and have a name, the number in
protobuf (`-`: none) and a type, which is
    string, bool, int32, int64, double, bytes as Go and protobuf call them
    Quantity, Amount, IntOrString, Time,      with a JSON of their own; an Amount is a Quantity of a resource,
    MicroTime, Raw, Free                      rounded up to thousandths; Raw is any object, Free any value
    Container, meta.v1.ObjectMeta             a message, of this group or another
    A|[B], bool|A                             one of several, of which a value's form says which: an object, a list or a
                                              boolean; in protobuf a message with a field for each
    [type], {type}, {key:type}                a list; a map of text to the type, where the text has a name of its own
    type?                                     a pointer: zero values are kept, only what is absent is not written
    type!                                     written even if it is empty
    type*, type~                              required, or not, against the rule (see Field.required)
After the type, words say how patches merge the field, as Kubernetes' OpenAPI documents do:
    by name,protocol=TCP                      a list with one item for each key; `=` gives a key's default, `?` says it
                                              may be absent. A strategic merge patch merges by the first key, or, after
                                              `replaced`, replaces the list. `atomic` items have one owner.
    set                                       a list of different scalars; strategic merge adds to it if it is `merged`
    atomic                                    a list or an object with one owner as a whole; `merged key`, if strategic
                                              merge merges it all the same; `replaced`, if that replaces the object
Without them, objects are merged field by field, and a list is one value. Last come rules for values:
    >=0, >=1                                  the least value that validation lets through
    nonempty                                  validation asks for a value
`+Message number` is a message whose fields, in JSON, are those of the message around it. `string: A B`, `A = type` and
`enum A: value value` name types that are no messages: refusals call them so. kube-apiserver's messages list an enum's
values in this order.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Final, Literal

import msgspec

Form = Literal["scalar", "special", "message", "list", "map", "either"]

SCALARS: Final = frozenset({"string", "bool", "int32", "int64", "double", "bytes"})
_GO_SCALARS: Final = {"bytes": "[]uint8", "double": "float64"}
SPECIAL: Final = {
    "Quantity": "resource.Quantity",
    "Amount": "resource.Quantity",
    "IntOrString": "intstr.IntOrString",
    "Time": "v1.Time",
    "MicroTime": "v1.MicroTime",
    "Raw": "runtime.RawExtension",
    "Free": "v1.FieldsV1",
}
"""What Go calls them."""

# The sections of the table by name: the module in groups/, and the apiVersion of its kinds.
_SECTIONS: Final[Mapping[str, tuple[str, str]]] = {
    "admissionregistration.v1": ("admissionregistration", "admissionregistration.k8s.io/v1"),
    "apiextensions.v1": ("apiextensions", "apiextensions.k8s.io/v1"),
    "apiregistration.v1": ("apiregistration", "apiregistration.k8s.io/v1"),
    "apps.v1": ("apps", "apps/v1"),
    "authentication.v1": ("authentication", "authentication.k8s.io/v1"),
    "authorization.v1": ("authorization", "authorization.k8s.io/v1"),
    "autoscaling.v1": ("autoscaling", "autoscaling/v1"),
    "autoscaling.v2": ("autoscaling", "autoscaling/v2"),
    "batch.v1": ("batch", "batch/v1"),
    "certificates.v1": ("certificates", "certificates.k8s.io/v1"),
    "coordination.v1": ("coordination", "coordination.k8s.io/v1"),
    "core.v1": ("core", "v1"),
    "discovery.v1": ("discovery", "discovery.k8s.io/v1"),
    "events.v1": ("events", "events.k8s.io/v1"),
    "flowcontrol.v1": ("flowcontrol", "flowcontrol.apiserver.k8s.io/v1"),
    "meta.v1": ("meta", "meta.k8s.io/v1"),
    "metrics.v1beta1": ("metrics", "metrics.k8s.io/v1beta1"),
    "networking.v1": ("networking", "networking.k8s.io/v1"),
    "node.v1": ("node", "node.k8s.io/v1"),
    "policy.v1": ("policy", "policy/v1"),
    "rbac.v1": ("rbac", "rbac.authorization.k8s.io/v1"),
    "resource.v1": ("resource", "resource.k8s.io/v1"),
    "scheduling.v1": ("scheduling", "scheduling.k8s.io/v1"),
    "scheduling.v1alpha2": ("scheduling", "scheduling.k8s.io/v1alpha2"),
    "scheduling.v1beta1": ("scheduling", "scheduling.k8s.io/v1beta1"),
    "situate.v1alpha1": ("situate", "situate.dev/v1alpha1"),
    "storage.v1": ("storage", "storage.k8s.io/v1"),
    "types": ("meta", ""),
    "x.v1alpha1": ("situate", "scheduling.x-k8s.io/v1alpha1"),
}
_BY_API_VERSION: Final = {api_version: section for section, (_, api_version) in _SECTIONS.items()}


class Type(msgspec.Struct, frozen=True):
    """The type of a field."""

    form: Form
    name: str
    """The name of a scalar, a special type or a message (`core.v1.Container`). Empty for a list or a map."""
    go: str
    """What Go calls it in a refusal, as `[]v1.Container`."""
    of: "Type | None" = None
    """The type of a list's items or a map's values."""
    values: tuple[str, ...] = ()
    """The values of an enum."""
    options: "tuple[Type, ...]" = ()
    """What an `either` may be, in the order of protobuf's numbers."""


class Field(msgspec.Struct, frozen=True):
    """One field of a message."""

    name: str
    """The name in JSON. For an inlined message, the message's name."""
    number: int
    """The number in protobuf, or 0 if protobuf does not carry the field."""
    type: Type
    pointer: bool = False
    """Zero values are kept."""
    always: bool = False
    """Written even if empty."""
    inline: bool = False
    """In JSON, the fields of the inner message are fields of this one."""
    required: bool = False
    """As in OpenAPI. By rule, fields that are always written are required, except objects and times."""
    merge: str = ""
    """How patches merge the field, in the words of the table."""
    rules: tuple[str, ...] = ()
    """The rules for its value. The values of an enum are in its type."""


class Message(msgspec.Struct, frozen=True):
    """An object in JSON, a message in protobuf."""

    name: str
    fields: tuple[Field, ...]
    is_kind: bool = False

    @property
    def go(self) -> str:
        """What Go calls it in a refusal, without the package."""
        return self.name.rpartition(".")[2]


def kinds() -> Mapping[tuple[str, str], str]:
    """The names of all kinds' messages, by apiVersion and kind."""
    return _kinds()


@cache
def _kinds() -> Mapping[tuple[str, str], str]:
    found: dict[tuple[str, str], str] = {}
    for section, (_, api_version) in _SECTIONS.items():
        for name, line in _lines(section).items():
            if line.startswith("kind "):
                found[api_version, name] = f"{section}.{name}"
    return found


def message_of(api_version: str, kind: str) -> Message | None:
    """The message of a kind, or None. Every group has DeleteOptions."""
    if kind == "DeleteOptions":
        return message("meta.v1.DeleteOptions")
    section = _BY_API_VERSION.get(api_version, "")
    if not section or not _lines(section).get(kind, "").startswith("kind "):
        return None
    return message(f"{section}.{kind}")


@cache
def message(name: str) -> Message:
    """The message of this name, as `core.v1.Pod`. Raises KeyError."""
    section, _, own = name.rpartition(".")
    if section not in _SECTIONS:
        raise KeyError(name)
    head, _, text = _lines(section)[own].partition(":")
    is_kind = head.startswith("kind ")
    fields = [_field(section, one.strip()) for one in text.split(";") if one.strip()]
    if is_kind:
        fields[:0] = _TYPE_META
    return Message(name, tuple(fields), is_kind)


_TEXT: Final = Type("scalar", "string", "string")
_TYPE_META: Final = (Field("kind", 0, _TEXT), Field("apiVersion", 0, _TEXT))


def flat_fields(one: Message) -> Iterator[Field]:
    """The fields of the message in JSON."""
    for field in one.fields:
        if field.inline:
            yield from flat_fields(message(field.type.name))
        else:
            yield field


def inner_types(kind: Type) -> Iterator[Type]:
    """The scalars, special types and messages that a type consists of."""
    if kind.of is not None:
        yield from inner_types(kind.of)
    elif kind.options:
        for one in kind.options:
            yield from inner_types(one)
    else:
        yield kind


@cache
def is_recursive(name: str) -> bool:
    """Whether a message can occur inside of itself."""
    found: dict[str, None] = {}
    waiting = [name]
    while waiting:
        for field in message(waiting.pop()).fields:
            for kind in inner_types(field.type):
                if kind.name == name and kind.form == "message":
                    return True
                if kind.form == "message" and kind.name not in found:
                    found[kind.name] = None
                    waiting.append(kind.name)
    return False


def _field(section: str, text: str) -> Field:
    if text.startswith("+"):
        name, number = text[1:].split()
        return Field(name, int(number), _type(section, name), inline=True)
    name, number, kind, *words = text.split()
    found = _type(section, kind.rstrip("?!*~"))
    by_rule = "!" in kind and found.form not in ("message", "special")
    return Field(
        name,
        0 if number == "-" else int(number),
        found,
        pointer="?" in kind,
        always="!" in kind,
        required="*" in kind or (by_rule and "~" not in kind),
        merge=" ".join(word for word in words if not _is_rule(word)),
        rules=tuple(filter(_is_rule, words)),
    )


def _is_rule(word: str) -> bool:
    return word == "nonempty" or word.startswith(">=")


@cache
def _type(section: str, text: str) -> Type:
    if text in SCALARS:
        return Type("scalar", text, _GO_SCALARS.get(text, text))
    if text in SPECIAL:
        return Type("special", text, SPECIAL[text])
    if "|" in text:
        return Type("either", "", "", options=tuple(_type(section, one) for one in text.split("|")))
    if text[0] == "[":
        inner = _type(section, text[1:-1])
        return Type("list", "", f"[]{inner.go}", inner)
    if text[0] == "{":
        key, _, value = text[1:-1].rpartition(":")
        inner = _type(section, value)
        return Type("map", "", f"map[{_type(section, key).go if key else 'string'}]{inner.go}", inner)
    there, _, name = text.rpartition(".")
    there = there or section
    go = f"{there.rpartition('.')[2]}.{name}"
    alias = _aliases(there).get(name)
    if alias is None:
        return Type("message", f"{there}.{name}", go)
    if alias.startswith("enum "):
        return Type("scalar", "string", go, values=tuple(value.strip('"') for value in alias.split()[1:]))
    meant = _type(there, alias)
    return Type(meant.form, meant.name, go, meant.of, options=meant.options)


@cache
def _lines(section: str) -> Mapping[str, str]:
    """The lines of a section's messages, by the message's name."""
    return _section(section)[0]


@cache
def _aliases(section: str) -> Mapping[str, str]:
    return _section(section)[1]


_CONTINUED: Final = re.compile(r"\n +")


@cache
def _section(section: str) -> tuple[Mapping[str, str], Mapping[str, str]]:
    text: str = import_module(f"situate.wire.schema.groups.{_SECTIONS[section][0]}").TABLE
    body = _CONTINUED.sub(" ", text).partition(f"[{section}]\n")[2].partition("\n[")[0]
    lines: dict[str, str] = {}
    aliases: dict[str, str] = {}
    for line in body.strip().splitlines():
        head, colon, rest = line.partition(":")
        if not colon:
            name, _, meaning = line.partition(" = ")
            aliases[name] = meaning
        elif head == "string":
            aliases.update(dict.fromkeys(rest.split(), "string"))
        elif head.startswith("enum "):
            aliases[head.removeprefix("enum ")] = f"enum{rest}"
        else:
            lines[head.removeprefix("kind ")] = line
    return lines, aliases
