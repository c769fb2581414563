"""Problems read as Go's field errors do."""

import pytest

from situate.core.config.errors import ConfigError
from situate.core.model.field_errors import duplicate, forbidden, go_json, invalid, quoted, required, unsupported


@pytest.mark.parametrize(
    "text, shown",
    [
        pytest.param("a", '"a"', id="plain text"),
        pytest.param('say "hi"\\', '"say \\"hi\\"\\\\"', id="quotes and backslashes"),
        pytest.param("a\nb\tc\a", '"a\\nb\\tc\\a"', id="control characters with names"),
        pytest.param("\x00\x7f", '"\\x00\\x7f"', id="control characters without"),
        pytest.param("é<&>", '"é<&>"', id="what can be printed"),
        pytest.param("\u200b\U000e0001", '"\\u200b\\U000e0001"', id="what cannot"),
    ],
)
def test_text_is_quoted_as_go_quotes_it(text: str, shown: str) -> None:
    assert quoted(text) == shown


@pytest.mark.parametrize(
    "value, shown",
    [
        pytest.param({"a": [1, None, True]}, '{"a":[1,null,true]}', id="without blanks"),
        pytest.param("<a & b>", '"\\u003ca \\u0026 b\\u003e"', id="what could end a script element is escaped"),
        pytest.param("é", '"é"', id="other characters are not"),
    ],
)
def test_values_are_shown_as_gos_json(value: object, shown: str) -> None:
    assert go_json(value) == shown


@pytest.mark.parametrize(
    "problem, line",
    [
        pytest.param(invalid("a.b", 3, "too small"), "a.b: Invalid value: 3: too small", id="a number"),
        pytest.param(invalid("a", "<x>", "no"), 'a: Invalid value: "<x>": no', id="text"),
        pytest.param(invalid("a", "<x>", "no", named=True), 'a: Invalid value: "\\u003cx\\u003e": no', id="a name"),
        pytest.param(invalid("a", None, "no"), "a: Invalid value: null: no", id="nothing"),
        pytest.param(required("a"), "a: Required value", id="required"),
        pytest.param(required("a", "why"), "a: Required value: why", id="required, and why"),
        pytest.param(duplicate("a", "x"), 'a: Duplicate value: "x"', id="twice"),
        pytest.param(forbidden("a", "why"), "a: Forbidden: why", id="forbidden"),
        pytest.param(
            unsupported("a", "x", ("b", "c")), 'a: Unsupported value: "x": supported values: "b", "c"', id="unsupported"
        ),
    ],
)
def test_a_problem_is_a_line(problem: str, line: str) -> None:
    assert problem == line


def test_an_error_has_every_problem() -> None:
    error = ConfigError(["a", "b"])
    assert error.problems == ("a", "b")
    assert str(error) == "a; b"
