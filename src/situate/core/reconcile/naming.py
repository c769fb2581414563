"""Names of created objects and hashes of templates, in Kubernetes' alphabet.

A generated name depends on the owner and a counter and is not random: a controller that is called twice on the same
state uses the same names, and the second create finds them in use.
"""

from collections.abc import Callable, Iterator
from hashlib import blake2s
from itertools import count

import msgspec

from situate.core.model.names import MAX_SUBDOMAIN
from situate.core.model.stored import PodTemplateSpec, Raw, StoredMeta

LETTERS = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH = 5
TEMPLATE_HASH = "pod-template-hash"
_GENERATED_MAX = 63 - SUFFIX_LENGTH


def suffix(*parts: str | int) -> str:
    """Five letters, a hash of the parts."""
    number = int.from_bytes(blake2s("\0".join(map(str, parts)).encode()).digest()[:8], "big")
    letters = []
    for _ in range(SUFFIX_LENGTH):
        number, letter = divmod(number, len(LETTERS))
        letters.append(LETTERS[letter])
    return "".join(letters)


def fresh_names(base: str, owner: StoredMeta, taken: Callable[[str], bool]) -> Iterator[str]:
    """Free names that begin with `base`, without end. They depend on the owner's version, so that a freed name is not
    reused at once."""
    stem = base[:_GENERATED_MAX]
    for counter in count():
        name = stem + suffix(owner.uid, owner.resource_version, counter)
        if not taken(name):
            yield name


def template_hash(template: PodTemplateSpec, collisions: int | None) -> str:
    """A hash of eight to ten letters; `collisions` changes it."""
    return data_hash({"template": template}, collisions)


def data_hash(data: Raw, collisions: int | None) -> str:
    text = msgspec.json.encode(data, order="sorted") + (b"" if collisions is None else b"\0%d" % collisions)
    number = int.from_bytes(blake2s(text, digest_size=4).digest(), "big")
    return "".join(LETTERS[ord(digit) % len(LETTERS)] for digit in str(number))


def hashed_name(base: str, digest: str) -> str:
    return f"{base[: MAX_SUBDOMAIN - 1 - len(digest)]}-{digest}"


def same_template(one: PodTemplateSpec, other: PodTemplateSpec) -> bool:
    """Whether two templates are equal except for the hash label."""
    return (
        one.metadata.annotations == other.metadata.annotations
        and one.metadata.finalizers == other.metadata.finalizers
        and _without_hash(one) == _without_hash(other)
        and (one.spec == other.spec or _said(one.spec) == _said(other.spec))
    )


def _without_hash(template: PodTemplateSpec) -> dict[str, str]:
    return {key: value for key, value in template.metadata.labels.items() if key != TEMPLATE_HASH}


def _said(value: object) -> object:
    """Without nulls and empty lists."""
    if isinstance(value, dict):
        return {key: _said(part) for key, part in value.items() if part is not None and part != []}
    if isinstance(value, list | tuple):
        return [_said(part) for part in value]
    return value
