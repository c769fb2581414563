"""Writes plain values as JSON and YAML, as Kubernetes' tools do: no folded lines, quotes where needed."""

from functools import lru_cache
from typing import Any

import msgspec
import yaml

from situate.wire.errors import InputError
from situate.wire.yaml import load_yaml

JSON_INDENT = 2

_STR = "tag:yaml.org,2002:str"
_CACHE_SIZE = 16_384
_NEVER_FOLD = 2**31 - 1


def dump_json(values: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(values), indent=JSON_INDENT).decode() + "\n"


def dump_yaml(values: Any, *, sort_keys: bool = False) -> str:
    """YAML that every reader decodes to the same values, also one of YAML 1.1."""
    return str(
        yaml.dump(
            values,
            Dumper=_Dumper,
            default_flow_style=False,
            allow_unicode=True,
            sort_keys=sort_keys,
            width=_NEVER_FOLD,
        )
    )


_SafeDumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_SafeDumper):  # type: ignore[misc]
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: Any, text: str) -> yaml.ScalarNode:
    """Quote text that would be read as another type, as Kubernetes' YAML writer does."""
    node: yaml.ScalarNode = dumper.represent_scalar(_STR, text, style=None if _reads_as_text(text) else '"')
    return node


@lru_cache(maxsize=_CACHE_SIZE)
def _reads_as_text(text: str) -> bool:
    try:
        return isinstance(next(load_yaml(text.encode()), None), str)
    except InputError:
        return True  # a mark of YAML's own: the writer sees that, and quotes it


_Dumper.add_representer(str, _text)
