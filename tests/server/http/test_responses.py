from situate.server.errors import StatusError, too_many_requests
from situate.server.http.responses import WARNINGS_BYTES, head, status_response, warning_headers


def test_warnings_are_quoted_and_cannot_break_out_of_their_header() -> None:
    assert warning_headers(['unknown field "a\\b"']) == 'Warning: 299 - "unknown field \\"a\\\\b\\""\r\n'
    assert warning_headers(["a\r\nSet-Cookie: x"]) == 'Warning: 299 - "a  Set-Cookie: x"\r\n'
    assert warning_headers(["ü"]).encode("latin-1").decode() == 'Warning: 299 - "ü"\r\n'


def test_warnings_are_told_once_and_within_bounds() -> None:
    assert warning_headers(["a", "a"]).count("Warning") == 1
    many = warning_headers([f"{number} {'x' * 1000}" for number in range(100)])
    assert 0 < len(many) <= WARNINGS_BYTES


def test_a_refusal_that_says_when_to_come_again_says_so_in_its_header() -> None:
    answer = status_response(too_many_requests("busy", retry_after_s=7))
    assert (answer.code, answer.headers) == (429, "Retry-After: 7\r\n")
    assert status_response(StatusError(400, "BadRequest", "x")).headers == ""


def test_a_head_has_a_date() -> None:
    lines = head(200, "A: b\r\n").split(b"\r\n")
    assert lines[0] == b"HTTP/1.1 200 OK"
    assert lines[1] == b"A: b"
    assert lines[2].startswith(b"Date: ")
    assert lines[2].endswith(b" GMT")
