"""Names, labels, times."""

from situate.core.model.base import Labels
from situate.core.model.meta import ObjectMeta
from situate.core.model.names import label_value_problems, qualified_name_problems, subdomain_problems
from situate.core.model.timestamp import TimestampError, epoch_ms
from situate.core.model.validate.problem import Problems, invalid, required


def metadata_problems(meta: ObjectMeta, *, any_case: bool = False) -> Problems:
    """`any_case`: for objects named after drivers, whose names may have capitals."""
    if not meta.name:
        yield required("metadata.name")
    elif not any_case:
        for text in subdomain_problems(meta.name):
            yield invalid("metadata.name", meta.name, text)
    if meta.namespace:
        for text in subdomain_problems(meta.namespace):
            yield invalid("metadata.namespace", meta.namespace, text)
    yield from labels_problems("metadata.labels", meta.labels)
    if meta.creation_timestamp is not None:
        yield from time_problems("metadata.creationTimestamp", meta.creation_timestamp)
    if meta.deletion_timestamp is not None:
        yield from time_problems("metadata.deletionTimestamp", meta.deletion_timestamp)


def labels_problems(path: str, labels: Labels) -> Problems:
    for key, value in labels.items():
        yield from key_problems(path, key)
        for text in label_value_problems(value):
            yield invalid(path, value, text)


def key_problems(path: str, key: str) -> Problems:
    for text in qualified_name_problems(key):
        yield invalid(path, key, text)


def time_problems(path: str, text: str) -> Problems:
    try:
        epoch_ms(text)
    except TimestampError as error:
        yield invalid(path, text, str(error))
