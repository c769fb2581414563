"""The kinds of flowcontrol.apiserver.k8s.io/v1, which are kept: the server limits requests by levels of its own."""
