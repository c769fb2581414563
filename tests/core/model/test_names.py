"""Names follow Kubernetes' grammar, in ASCII, over the whole text."""

import pytest

from situate.core.model.names import label_value_problems, qualified_name_problems, subdomain_problems


@pytest.mark.parametrize("text", ["a", "0", "web-1", "a.b-c.d", "x" * 253, "1.2.3.4"])
def test_a_subdomain_is_dotted_labels(text: str) -> None:
    assert subdomain_problems(text) == ()


@pytest.mark.parametrize("text", ["", "A", "-a", "a-", "a..b", ".a", "a_b", "a b", "a\n", "é", "٣", "a/b"])
def test_anything_else_is_no_subdomain(text: str) -> None:
    (problem,) = subdomain_problems(text)
    assert problem.startswith("a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters")


def test_a_subdomain_is_no_longer_than_253() -> None:
    assert subdomain_problems("x" * 254) == ("must be no more than 253 bytes",)


@pytest.mark.parametrize("text", ["a", "A_b.c-D", "kubernetes.io/hostname", "a/b", "x" * 63])
def test_a_label_key_is_a_name_with_an_optional_prefix(text: str) -> None:
    assert qualified_name_problems(text) == ()


@pytest.mark.parametrize(
    "text, begins",
    [
        pytest.param("", "name part must be non-empty", id="nothing"),
        pytest.param("a/", "name part must be non-empty", id="no name"),
        pytest.param("/a", "prefix part must be non-empty", id="no prefix"),
        pytest.param("A/a", "prefix part a lowercase RFC 1123 subdomain", id="a prefix in capitals"),
        pytest.param("a/b/c", "a valid label key must consist of", id="two slashes"),
        pytest.param("-a", "name part must consist of alphanumeric characters", id="a dash at the start"),
        pytest.param("x" * 64, "name part must be no more than 63 bytes", id="too long a name"),
        pytest.param("a\n", "name part must consist of", id="a line break at the end"),
    ],
)
def test_what_is_wrong_with_a_label_key(text: str, begins: str) -> None:
    assert qualified_name_problems(text)[0].startswith(begins)


@pytest.mark.parametrize("text", ["", "a", "A.b_c-D", "x" * 63])
def test_a_label_value_may_be_empty(text: str) -> None:
    assert label_value_problems(text) == ()


@pytest.mark.parametrize(
    "text, begins",
    [
        pytest.param("a/b", "a valid label must be an empty string or consist of", id="a slash"),
        pytest.param("a ", "a valid label must be an empty string or consist of", id="a space"),
        pytest.param("x" * 64, "must be no more than 63 bytes", id="too long"),
    ],
)
def test_what_is_wrong_with_a_label_value(text: str, begins: str) -> None:
    assert label_value_problems(text)[0].startswith(begins)
