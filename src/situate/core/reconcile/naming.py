"""Names of what controllers create, and hashes of templates, in the letters Kubernetes uses for both.

A generated name is a function of its owner and a counter, not a die: a controller that is asked twice on the same state
asks for the same names, and the second create finds them taken.
"""

from collections.abc import Callable, Iterator
from hashlib import blake2s
from itertools import count

import msgspec

from situate.core.model.names import MAX_SUBDOMAIN
from situate.core.model.stored import PodTemplateSpec, Raw, StoredMeta

__all__ = ["TEMPLATE_HASH", "data_hash", "fresh_names", "hashed_name", "same_template", "suffix", "template_hash"]

LETTERS = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH = 5
TEMPLATE_HASH = "pod-template-hash"
_GENERATED_MAX = 63 - SUFFIX_LENGTH


def suffix(*parts: str | int) -> str:
    """Five letters that these parts determine."""
    number = int.from_bytes(blake2s("\0".join(map(str, parts)).encode()).digest()[:8], "big")
    letters = []
    for _ in range(SUFFIX_LENGTH):
        number, letter = divmod(number, len(LETTERS))
        letters.append(LETTERS[letter])
    return "".join(letters)


def fresh_names(base: str, owner: StoredMeta, taken: Callable[[str], bool]) -> Iterator[str]:
    """Names that begin with `base`, without end. The owner's version is part of the count, so that a name that was
    used and is free again does not come back at once."""
    stem = base[:_GENERATED_MAX]
    for counter in count():
        name = stem + suffix(owner.uid, owner.resource_version, counter)
        if not taken(name):
            yield name


def template_hash(template: PodTemplateSpec, collisions: int | None) -> str:
    """Eight to ten letters that a template determines. `collisions` makes another of the same template."""
    return data_hash({"template": template}, collisions)


def data_hash(data: Raw, collisions: int | None) -> str:
    text = msgspec.json.encode(data, order="sorted") + (b"" if collisions is None else b"\0%d" % collisions)
    number = int.from_bytes(blake2s(text, digest_size=4).digest(), "big")
    return "".join(LETTERS[ord(digit) % len(LETTERS)] for digit in str(number))


def hashed_name(base: str, digest: str) -> str:
    return f"{base[: MAX_SUBDOMAIN - 1 - len(digest)]}-{digest}"


def same_template(one: PodTemplateSpec, other: PodTemplateSpec) -> bool:
    """Whether two templates make the same pods, but for the label with the hash of the template."""
    return (
        one.metadata.annotations == other.metadata.annotations
        and one.metadata.finalizers == other.metadata.finalizers
        and _without_hash(one) == _without_hash(other)
        and (one.spec == other.spec or _said(one.spec) == _said(other.spec))
    )


def _without_hash(template: PodTemplateSpec) -> dict[str, str]:
    return {key: value for key, value in template.metadata.labels.items() if key != TEMPLATE_HASH}


def _said(value: object) -> object:
    """Without what is null or an empty list, which say nothing."""
    if isinstance(value, dict):
        return {key: _said(part) for key, part in value.items() if part is not None and part != []}
    if isinstance(value, list | tuple):
        return [_said(part) for part in value]
    return value
