"""Traces: what a line says, and one clear line for what is wrong with it."""

from collections.abc import Mapping
from typing import Any

import pytest

from situate.core.model.priority import priority_classes
from situate.sim.whatif.distributions import Distribution, DistributionKind
from situate.sim.whatif.trace import Trace, read_trace
from situate.wire.errors import InputError

TEMPLATE = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]},
}


def templates(name: str) -> Mapping[str, Any]:
    if name != "web.yaml":
        raise FileNotFoundError(2, "No such file or directory", name)
    return TEMPLATE


def read(text: str, *, duration: Distribution | None = None, taken: Mapping[str, str] | None = None) -> Trace:
    return read_trace(
        text.encode(),
        "t.csv",
        classes=priority_classes(()),
        templates=templates,
        taken=taken or {},
        seed=0,
        duration=duration,
        first_group=0,
    )


def problem(text: str, **more: Any) -> str:
    with pytest.raises(InputError) as raised:
        read(text, **more)
    return str(raised.value)


def requests(trace: Trace, at: int = 0) -> dict[str, Any]:
    return dict(trace.arrivals[at].pod.spec.containers[0].resources.requests)


def test_a_line_of_csv_makes_a_pod() -> None:
    trace = read("time,name,namespace,duration,cpu,memory,labels,priority\n5,web,shop,10m,500m,1Gi,app=web;tier=a,7\n")
    (one,) = trace.arrivals
    assert (one.at_ms, one.runs_ms, one.pod.spec.priority) == (5_000, 600_000, 7)
    assert (one.pod.metadata.namespace, one.pod.metadata.name) == ("shop", "web")
    assert one.pod.metadata.labels == {"app": "web", "tier": "a"}
    assert requests(trace) == {"cpu": "500m", "memory": "1Gi"}


def test_a_line_of_json_says_the_same() -> None:
    line = '{"time": "5s", "name": "web", "requests": {"cpu": 2, "nvidia.com/gpu": 1}, "labels": {"app": "web"}}'
    trace = read(line + "\n\n" + '{"time": 6, "name": "own", "pod": {"spec": {"containers": [{"name": "x"}]}}}')
    assert requests(trace) == {"cpu": 2, "nvidia.com/gpu": 1}
    assert [one.at_ms for one in trace.arrivals] == [5_000, 6_000]
    assert trace.arrivals[1].pod.spec.containers[0].name == "x"


def test_a_count_makes_so_many_pods_which_are_one_group() -> None:
    trace = read("time,name,count\n0,web,3\n1,one,\n2,two,1\n")
    assert [one.pod.metadata.name for one in trace.arrivals] == ["web-0", "web-1", "web-2", "one", "two"]
    assert [trace.groups[one.group].name for one in trace.arrivals] == ["default/web"] * 3 + ["trace"] * 2


def test_lines_that_say_the_same_share_their_specification() -> None:
    trace = read("time,name,cpu\n0,a,1\n0,b,1\n0,c,2\n")
    specs = [one.pod.spec for one in trace.arrivals]
    assert specs[0] is specs[1]
    assert specs[0] is not specs[2]


def test_a_template_is_a_file_and_columns_add_to_it() -> None:
    trace = read("time,name,template,cpu\n0,web,web.yaml,2\n")
    assert requests(trace) == {"cpu": "2", "memory": "1Gi"}
    assert trace.arrivals[0].pod.metadata.labels == {"app": "web"}


def test_a_duration_that_is_not_said_is_the_one_for_all() -> None:
    trace = read("time,name,duration\n0,a,\n0,b,1m\n", duration=Distribution(DistributionKind.FIXED, 5))
    assert [one.runs_ms for one in trace.arrivals] == [5, 60_000]
    assert read("time,name\n0,a\n").arrivals[0].runs_ms is None


def test_a_pod_can_be_deleted_by_name_and_all_of_a_count_at_once() -> None:
    trace = read(
        "time,action,name,count\n0,create,web,2\n1,delete,web,\n2,delete,old,\n", taken={"default/old": "dump"}
    )
    assert [(one.at_ms, one.key) for one in trace.deletions] == [
        (1_000, "default/web-0"),
        (1_000, "default/web-1"),
        (2_000, "default/old"),
    ]


@pytest.mark.parametrize(
    "text, told",
    [
        pytest.param(
            "time,name\n7,a\n# x\n3,b\n", "line 4: time: time goes back: 3 is before 7, the time of line 2", id="time"
        ),
        pytest.param("time,name\n0,a\n1,a\n", "line 3: name: duplicate pod default/a: line 2 creates it", id="twice"),
        pytest.param("time,name,count\n0,a,2\n0,a-1,\n", "duplicate pod default/a-1", id="twice by count"),
        pytest.param(
            "time,name,cpu\n0,a,much\n",
            "line 2: spec.containers[0].resources.requests.cpu: Invalid value",
            id="quantity",
        ),
        pytest.param("time,name,cpu\n0,a,-1\n", "line 2: spec.containers[0]", id="negative"),
        pytest.param("time,name\nsoon,a\n", 'line 2: time: "soon" is not a duration', id="no time"),
        pytest.param("time,name\n,a\n", "line 2: time: Required value", id="time missing"),
        pytest.param("time,name,count\n0,a,x\n", 'line 2: count: "x" is not a number', id="count"),
        pytest.param("time,name,count\n0,a,0\n", 'line 2: count: "0" is not a number', id="no pod"),
        pytest.param("time,name,duration\n0,a,ever\n", 'line 2: duration: "ever" is not a duration', id="duration"),
        pytest.param("time,name,priority\n0,a,1.5\n", 'line 2: priority: "1.5" is not an integer', id="priority"),
        pytest.param("time,name,labels\n0,a,web\n", 'line 2: labels: "web" is not of the form name=value', id="labels"),
        pytest.param("time,name\n0,Bad_Name\n", "line 2: name: Invalid value: ", id="name"),
        pytest.param(
            "time,name,template\n0,a,no.yaml\n", "line 2: template: no.yaml: No such file or directory", id="file"
        ),
        pytest.param(
            "time,action,name\n0,delete,a\n", "line 2: name: deletes pod default/a, which does not exist", id="unmade"
        ),
        pytest.param(
            "time,action,name\n0,move,a\n", 'line 2: action: "move" is neither create nor delete', id="action"
        ),
        pytest.param(
            "time,name,priorityClassName\n0,a,vip\n", "line 2: priorityClassName: no PriorityClass", id="class"
        ),
        pytest.param("name\na\n", "line 1: the header has no column", id="no heading"),
        pytest.param("time,nmae\n0,a\n", 'line 1: "nmae" is neither a column nor a resource', id="unknown column"),
        pytest.param("time,cpu,cpu\n0,1,1\n", 'line 1: duplicate column "cpu"', id="a column twice"),
        pytest.param("time,name\n0\n", "line 2: 1 values under 2 headings", id="a value missing"),
        pytest.param('time,name\n0,"a\n', "line 2: not CSV", id="a quote left open"),
        pytest.param('{"time": 0, "nmae": "a"}', "line 1: nmae: unknown field", id="unknown field"),
        pytest.param('{"time": 0}\n{"time": ', "line 2: not JSON", id="cut off"),
        pytest.param('{"time": 0}\n[1]', "line 2: expected an object", id="no object"),
        pytest.param('{"time": [1]}', "line 1: time: expected a string or a number", id="a list for a time"),
        pytest.param("time,name\n", "the trace is empty", id="nothing but a heading"),
        pytest.param("time\0", "has NUL bytes", id="binary"),
    ],
)
def test_what_is_wrong_is_one_line_with_the_file_and_the_line(text: str, told: str) -> None:
    said = problem(text)
    assert said.startswith("t.csv: ")
    assert told in said
    assert "\n" not in said


def test_a_pod_that_is_there_already_cannot_come() -> None:
    assert "pod default/web already exists in dump.json" in problem(
        "time,name\n0,web\n", taken={"default/web": "dump.json"}
    )


def test_what_is_not_utf_8_is_said_to_be_so() -> None:
    with pytest.raises(InputError, match=r"t.csv: not UTF-8"):
        read_trace(
            b"time\n\xff",
            "t.csv",
            classes=priority_classes(()),
            templates=templates,
            taken={},
            seed=0,
            duration=None,
            first_group=0,
        )
