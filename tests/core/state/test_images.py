"""Images by name, and the nodes that have them."""

from builders import node
from situate.core.model.node import ContainerImage
from situate.core.state.images import ImageTable


def image(size: int, *names: str) -> ContainerImage:
    return ContainerImage(names=names, size_bytes=size)


def test_an_image_is_known_under_each_of_its_names() -> None:
    table = ImageTable()
    table.add(0, node(images=(image(5, "shop:v1", "shop@sha256:0"), image(3, "tool"))))
    table.add(2, node(images=(image(6, "shop:v1"),)))
    assert table.holders("shop:v1") == {0: 5, 2: 6}
    assert table.holders("shop@sha256:0") == {0: 5}
    assert table.holders("unheard of") == {}


def test_what_a_node_takes_along_leaves_no_trace() -> None:
    table = ImageTable()
    first, second = node(images=(image(5, "shop", "shop"), image(4, "shop"))), node(images=(image(6, "shop", "tool"),))
    table.add(0, first)
    table.add(1, second)
    table.remove(1, second)
    assert table.sizes == {"shop": {0: 5}}
    table.remove(0, first)
    table.remove(0, first)
    assert table.sizes == {}
