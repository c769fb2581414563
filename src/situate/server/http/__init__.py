"""The API on the network: HTTP/1.1 on TLS, one handler, our own reading of paths.

It reads requests and writes answers, and keeps clients from hurting the server. What an object is, who may change it
and how is decided elsewhere; whatever goes wrong is answered with a Status.
"""
