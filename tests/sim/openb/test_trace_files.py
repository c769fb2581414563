"""The files of the openb trace: what is read of them, and what is said of those that are wrong."""

import pytest

from situate.sim.openb.trace_files import TraceNode, TracePod, TraceRequest, read_nodes, read_pods
from situate.wire.errors import InputError

NODES = "sn,cpu_milli,memory_mib,gpu,model\n"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos\n"


def test_nodes_are_read_in_order() -> None:
    text = f"{NODES}b,96000,393216,8,G2\na,8000,32768,0,\n"
    assert read_nodes(text.encode(), "f") == (
        TraceNode("b", 96_000, 393_216, 8, "G2"),
        TraceNode("a", 8_000, 32_768, 0, ""),
    )


def test_pods_are_read_with_the_models_they_can_do_with() -> None:
    text = f"{PODS}a,4000,8192,1,470,T4|G2|T4,LS\nb,88000,1024,8,1000,,BE\n\nc,1000,1024,0,0,T4,LS\n"
    assert read_pods(text.encode(), "f") == (
        TracePod("a", TraceRequest(4_000, 8_192, 1, 470, ("G2", "T4"))),
        TracePod("b", TraceRequest(88_000, 1_024, 8, 1_000)),
        TracePod("c", TraceRequest(1_000, 1_024, 0, 0)),
    )
    assert [pod.ask.demand for pod in read_pods(text.encode(), "f")] == [470, 8_000, 0]


def test_files_without_models_and_with_a_byte_order_mark_are_read() -> None:
    text = "\ufeffname,cpu_milli,memory_mib,num_gpu,gpu_milli\r\na,1,2,1,1000\r\n"
    assert read_pods(text.encode(), "f") == (TracePod("a", TraceRequest(1, 2, 1, 1_000)),)


@pytest.mark.parametrize(
    "text, said",
    [
        ("", "f:1: the header has no column name"),
        ("name,cpu_milli\n", "f:1: the header has no column memory_mib"),
        (PODS, "f: no pod asks for a GPU"),
        (f"{PODS}a,1,1,0,0,,LS\n", "f: no pod asks for a GPU"),
        (f"{PODS}a,1,1,1,1000,,LS\nb,1,1\n", "f:3: 3 columns, but the header has 7"),
        (f"{PODS}a,1.5,1,1,1000,,LS\n", 'f:2: cpu_milli: "1.5" is not a whole number'),
        (f"{PODS}a,-1,1,1,1000,,LS\n", 'f:2: cpu_milli: "-1" is not a whole number'),
        (f"{PODS}a,1,{'9' * 40},1,1000,,LS\n", f'f:2: memory_mib: "{"9" * 40}" is not a whole number'),
        (f"{PODS}a,1,1,1,0,,LS\n", "f:2: gpu_milli: 0 is not from 1 to 1000"),
        (f"{PODS}a,1,1,1,1001,,LS\n", "f:2: gpu_milli: 1001 is not from 1 to 1000"),
        (f"{PODS}a,1,1,2,500,,LS\n", "f:2: gpu_milli: a share of each of 2 GPUs: several GPUs must be whole"),
        (f"{PODS},1,1,1,500,,LS\n", "f:2: name: is empty"),
        (f"{PODS}a,1,1,1,500,,LS\na,1,1,1,500,,LS\n", "f:3: name: a is a duplicate"),
        (f'{PODS}"a,1,1,1,500,,LS\n', "f:2: is not CSV: unexpected end of data"),
    ],
)
def test_pods_that_are_wrong_are_one_line_with_the_line(text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        read_pods(text.encode(), "f")
    assert str(caught.value) == said


@pytest.mark.parametrize(
    "text, said",
    [
        (f"{NODES}a,1,1,0,T4\n", "f: no node has a GPU"),
        (f"{NODES}a,1,1,257,T4\n", "f:2: gpu: 257 is more than 256"),
        (f"{NODES}a,1,1,x,T4\n", 'f:2: gpu: "x" is not a whole number'),
        (f"{NODES}a,1,1,1,T4\na,1,1,1,T4\n", "f:3: sn: a is a duplicate"),
    ],
)
def test_nodes_that_are_wrong_are_one_line_with_the_line(text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        read_nodes(text.encode(), "f")
    assert str(caught.value) == said


def test_bytes_that_are_no_text_are_said_with_their_line() -> None:
    with pytest.raises(InputError) as caught:
        read_pods(PODS.encode() + b"a,1,1,1,500,,LS\n\xff\n", "f")
    assert str(caught.value) == "f:3: is not text in UTF-8"
