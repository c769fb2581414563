"""What all objects of the model share: struct options, bounded integers, the empty mapping.

Field names are Kubernetes' in snake case; on the wire they are Kubernetes' own. A field that is absent, `null` or at
its default reads the same. Unknown fields are ignored.
"""

from collections.abc import Mapping
from typing import Annotated, Any, NoReturn

import msgspec

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

# Kubernetes decodes into fixed widths, and columns are int64: decoding refuses a number that does not fit.
Int32 = Annotated[int, msgspec.Meta(ge=INT32_MIN, le=INT32_MAX)]
Int64 = Annotated[int, msgspec.Meta(ge=INT64_MIN, le=INT64_MAX)]


class _Empty(dict[str, Any]):
    """An immutable empty mapping. It is a dict because encoders do not know mapping proxies."""

    __slots__ = ()

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("the shared empty mapping cannot be changed")

    __setitem__ = __ior__ = setdefault = update = _refuse


# One empty mapping for every absent one: a million pods without annotations share it.
EMPTY: Mapping[str, Any] = _Empty()

Labels = Mapping[str, str]


class Model(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Base of all objects. `gc=False` is safe: frozen values built bottom-up cannot form cycles."""
