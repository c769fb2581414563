"""What commands read: files, clusters, workloads and scheduler configurations."""
