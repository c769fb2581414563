"""Custom resources do what kube-apiserver does with them: a sample of `make fuzz-crd`."""

from kubernetes.cluster import Cluster
from kubernetes.custom_comparison import compare

SEED, COUNT = 7, 24


def test_random_schemas_and_objects_get_kube_apiservers_answers(cluster: Cluster) -> None:
    found = compare(cluster, SEED, COUNT)
    assert found == [], "\n".join(map(str, found))
