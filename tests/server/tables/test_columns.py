from typing import Any

import pytest

from situate.server.tables.columns import printer

OBJECT = {
    "metadata": {"name": "a", "creationTimestamp": "1970-01-01T00:00:00Z"},
    "spec": {"size": 0, "text": "", "labels": {"b": "2", "a": "1"}, "items": [1, 2]},
}
NOW_NS = 90 * 10**9


@pytest.mark.parametrize(
    "text, cell",
    [
        pytest.param("Name!", "a", id="a standard column"),
        pytest.param("Age", "90s", id="the age"),
        pytest.param("Size# = spec.size", 0, id="a path"),
        pytest.param("Count# = spec.none", 0, id="an integer that is absent"),
        pytest.param("Flag? = spec.none", False, id="a boolean that is absent"),
        pytest.param("Text = spec.none.deeper", "", id="text that is absent"),
        pytest.param("Text = spec.text|none", "", id="a value for what is absent"),
        pytest.param("Text = spec.text||none", "none", id="a value for what is absent or empty"),
        pytest.param("Text = spec.none|null", None, id="null for what is absent"),
        pytest.param("Labels = labels(spec.labels)", "a=1,b=2", id="a function"),
        pytest.param("Items# = count(spec.items)", 2, id="a count"),
        pytest.param("Own", "own a", id="a function of the kind"),
        pytest.param("Timed", 90, id="a function of the time"),
    ],
)
def test_a_cell_comes_from_its_column(text: str, cell: Any) -> None:
    cells = {"Own": lambda obj: f"own {obj['metadata']['name']}"}
    found = printer(text, cells, {"Timed": lambda _obj, now_ns: now_ns // 10**9})
    assert found.row(OBJECT, NOW_NS) == [cell]


def test_a_column_has_a_name_a_type_and_a_priority() -> None:
    (column,) = printer("+Up-to-date# = status.updated").columns
    assert (column["name"], column["type"], column["format"], column["priority"]) == ("Up-to-date", "integer", "", 1)
