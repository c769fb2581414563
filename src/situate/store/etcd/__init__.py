"""The store in etcd, for several servers at once. Our own small client: KV, Watch and Lease over gRPC."""
