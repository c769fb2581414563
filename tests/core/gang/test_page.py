"""What docs/guides/gangs.md shows works, and prints what it shows."""

from __future__ import annotations

import contextlib
import io
import re
import textwrap
from pathlib import Path

import pytest

from situate.core.gang.naming import GangSource, gang_of
from situate.core.model.custom_groups.table import CUSTOM_GROUP_KINDS
from situate.wire.objects import Source, read_objects

PAGE = (Path(__file__).parent.parent.parent.parent / "docs" / "guides" / "gangs.md").read_text()


def blocks(language: str) -> list[str]:
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```$", PAGE, re.MULTILINE | re.DOTALL)
    return [textwrap.dedent(text) for _, text in found]


def test_the_example_prints_what_the_page_shows() -> None:
    (code,), (expected,) = blocks("python"), blocks("text")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "docs/guides/gangs.md", "exec"), {"__name__": "example"})
    assert printed.getvalue() == expected


def test_the_table_has_every_field_without_effect_and_no_other() -> None:
    rows = re.findall(
        r"^\| ([^|]+) \| `([^|`]+)` \| ([^|]+) \|$", PAGE.partition("## PodGroups of other")[2], re.MULTILINE
    )
    assert rows == [(one.owner, *field) for one in CUSTOM_GROUP_KINDS for field in one.ignores.items()]


@pytest.mark.parametrize("number, source", list(enumerate(GangSource)), ids=str)
def test_each_way_to_name_a_gang_is_shown_with_objects_that_are_read(number: int, source: GangSource) -> None:
    objects = read_objects([Source("page.yaml", blocks("yaml")[number].encode())])
    assert objects.ignored == {}
    named = gang_of(objects.pods[0])
    assert named is not None
    assert (named.source, named.name) == (source, "train")
    groups = {
        GangSource.POD_GROUP: len(objects.pod_groups),
        **{GangSource(one.group): len(objects.custom_pod_groups) for one in CUSTOM_GROUP_KINDS},
    }
    assert groups.get(source, 1) == 1
