"""The messages and methods of etcd that a store needs.

The table below is all there is: protobuf's runtime makes the classes of it when this module is imported. So there is no
generated file, and nothing is encoded by hand. Numbers and names are those of etcd's rpc.proto and kv.proto, which
never change; fields that we do not use are left out, and etcd takes them as unset. The pool is our own, so that another
etcd client in the same process is not in the way.
"""

from __future__ import annotations

from typing import Any, Final

from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from msgspec import Struct

_PACKAGE: Final = "etcdserverpb"
_SCALARS: Final = {
    "bytes": Field.TYPE_BYTES,
    "string": Field.TYPE_STRING,
    "int64": Field.TYPE_INT64,
    "bool": Field.TYPE_BOOL,
    # Enumerations are sent as numbers.
    "enum": Field.TYPE_INT32,
}

# A field is `number type name`; `*` before the type: many; `/` and a word after the name: at most one of that word.
_MESSAGES: Final = {
    "KeyValue": "1 bytes key, 2 int64 create_revision, 3 int64 mod_revision, 5 bytes value, 6 int64 lease",
    "Event": "1 enum type, 2 KeyValue kv, 3 KeyValue prev_kv",
    "ResponseHeader": "3 int64 revision",
    "RangeRequest": "1 bytes key, 2 bytes range_end, 3 int64 limit, 4 int64 revision, 9 bool count_only",
    "RangeResponse": "1 ResponseHeader header, 2 *KeyValue kvs, 4 int64 count",
    "PutRequest": "1 bytes key, 2 bytes value, 3 int64 lease",
    "PutResponse": "1 ResponseHeader header",
    "DeleteRangeRequest": "1 bytes key",
    "DeleteRangeResponse": "1 ResponseHeader header",
    "RequestOp": "1 RangeRequest request_range/is, 2 PutRequest request_put/is,"
    " 3 DeleteRangeRequest request_delete_range/is",
    "ResponseOp": "1 RangeResponse response_range/is, 2 PutResponse response_put/is,"
    " 3 DeleteRangeResponse response_delete_range/is",
    "Compare": "1 enum result, 2 enum target, 3 bytes key, 6 int64 mod_revision/to, 7 bytes value/to",
    "TxnRequest": "1 *Compare compare, 2 *RequestOp success, 3 *RequestOp failure",
    "TxnResponse": "1 ResponseHeader header, 2 bool succeeded, 3 *ResponseOp responses",
    "CompactionRequest": "1 int64 revision",
    "CompactionResponse": "1 ResponseHeader header",
    "WatchCreateRequest": "1 bytes key, 2 bytes range_end, 3 int64 start_revision, 4 bool progress_notify,"
    " 6 bool prev_kv",
    "WatchProgressRequest": "",
    "WatchRequest": "1 WatchCreateRequest create_request/is, 3 WatchProgressRequest progress_request/is",
    "WatchResponse": "1 ResponseHeader header, 3 bool created, 4 bool canceled, 5 int64 compact_revision,"
    " 6 string cancel_reason, 11 *Event events",
    "LeaseGrantRequest": "1 int64 TTL",
    "LeaseGrantResponse": "1 ResponseHeader header, 2 int64 ID",
    "LeaseRevokeRequest": "1 int64 ID",
    "LeaseRevokeResponse": "1 ResponseHeader header",
    "LeaseTimeToLiveRequest": "1 int64 ID",
    "LeaseTimeToLiveResponse": "1 ResponseHeader header, 3 int64 TTL",
    "LeaseKeepAliveRequest": "1 int64 ID",
    "LeaseKeepAliveResponse": "1 ResponseHeader header, 2 int64 ID, 3 int64 TTL",
    "AuthenticateRequest": "1 string name, 2 string password",
    "AuthenticateResponse": "1 ResponseHeader header, 2 string token",
}

EQUAL: Final = 0
GREATER: Final = 1
OF_MODIFIED: Final = 2
OF_VALUE: Final = 3
DELETED: Final = 1


def _described() -> FileDescriptorProto:
    file = FileDescriptorProto(name="situate/etcd.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        words: list[str] = []
        for field in filter(None, fields.split(", ")):
            number, kind, label = field.split(" ")
            label, _, either = label.partition("/")
            made = message.field.add(name=label, number=int(number))
            made.label = Field.LABEL_REPEATED if kind.startswith("*") else Field.LABEL_OPTIONAL
            kind = kind.removeprefix("*")
            if kind in _SCALARS:
                made.type = _SCALARS[kind]
            else:
                made.type = Field.TYPE_MESSAGE
                made.type_name = f".{_PACKAGE}.{kind}"
            if either:
                if either not in words:
                    words.append(either)
                    message.oneof_decl.add(name=either)
                made.oneof_index = words.index(either)
    return file


_pool = DescriptorPool()
_pool.Add(_described())


def message(name: str) -> Any:
    """The class of a message. protobuf creates its attributes at run time, so it is not typed."""
    return GetMessageClass(_pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


class Method(Struct, frozen=True):
    """A gRPC method: its path, and the types of its request and response."""

    path: str
    request: Any
    response: Any


def _method(path: str, request: str, response: str) -> Method:
    return Method(f"/{_PACKAGE}.{path}", message(request), message(response))


RANGE: Final = _method("KV/Range", "RangeRequest", "RangeResponse")
TXN: Final = _method("KV/Txn", "TxnRequest", "TxnResponse")
COMPACT: Final = _method("KV/Compact", "CompactionRequest", "CompactionResponse")
WATCH: Final = _method("Watch/Watch", "WatchRequest", "WatchResponse")
LEASE_GRANT: Final = _method("Lease/LeaseGrant", "LeaseGrantRequest", "LeaseGrantResponse")
LEASE_REVOKE: Final = _method("Lease/LeaseRevoke", "LeaseRevokeRequest", "LeaseRevokeResponse")
LEASE_TIME_TO_LIVE: Final = _method("Lease/LeaseTimeToLive", "LeaseTimeToLiveRequest", "LeaseTimeToLiveResponse")
LEASE_KEEP_ALIVE: Final = _method("Lease/LeaseKeepAlive", "LeaseKeepAliveRequest", "LeaseKeepAliveResponse")
AUTHENTICATE: Final = _method("Auth/Authenticate", "AuthenticateRequest", "AuthenticateResponse")
