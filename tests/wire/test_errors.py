"""Bad input is said in one line."""

import pytest

from situate.wire.errors import MAX_LINE, InputError, from_decoder


def test_the_line_names_file_object_field_and_problem() -> None:
    error = InputError("Required value", file="a.yaml", subject="Pod default/web", path="spec.containers")
    assert str(error) == "a.yaml: Pod default/web: spec.containers: Required value"
    assert (error.file, error.subject, error.path) == ("a.yaml", "Pod default/web", "spec.containers")


def test_what_is_not_known_is_left_out() -> None:
    assert str(InputError("empty", file="a.yaml")) == "a.yaml: empty"
    assert str(InputError("empty")) == "empty"


def test_it_is_one_line_whatever_the_input_holds() -> None:
    line = str(InputError("bad\nworse\x1b[31m\u2028end", file="a\r.yaml"))
    assert line == "a .yaml: bad worse [31m end"
    assert len(str(InputError("x" * 10_000))) <= MAX_LINE + 3


@pytest.mark.parametrize(
    "message, path, problem",
    [
        pytest.param(
            "Expected `str`, got `int` - at `$.metadata.name`",
            "metadata.name",
            "expected a string, got an integer",
            id="a type",
        ),
        pytest.param(
            "Expected `str`, got `int` - at `$.metadata.labels[...]`",
            "metadata.labels[b]",
            "expected a string, got an integer",
            id="an entry of a mapping, by its key",
        ),
        pytest.param(
            "Expected `str | int | float`, got `array` - at `$.spec.containers[1].resources.requests[...]`",
            "spec.containers[1].resources.requests[cpu]",
            "expected a quantity (a string or a number), got a list",
            id="a quantity",
        ),
        pytest.param(
            "Expected `object | null`, got `bool` - at `$.spec.affinity`",
            "spec.affinity",
            "expected an object, got a boolean",
            id="an optional field",
        ),
        pytest.param(
            "Expected `int` <= 2147483647 - at `$.spec.priority`",
            "spec.priority",
            "expected an integer <= 2147483647",
            id="a bound",
        ),
        pytest.param("Expected `object`, got `array`", "", "expected an object, got a list", id="the whole object"),
        pytest.param("Number out of range - at `$.a[...]`", "a", "Number out of range", id="anything else"),
    ],
)
def test_a_decoders_complaint_in_plain_words(message: str, path: str, problem: str) -> None:
    value = {
        "metadata": {"labels": {"a": "x", "b": 1, "c": 2}},
        "spec": {"containers": [{}, {"resources": {"requests": {"memory": "1", "cpu": []}}}]},
    }
    assert from_decoder(message, value) == (path, problem)
