"""The API over HTTP/1.1 and TLS.

`server` builds everything; `filters` is what every request passes; `routing` finds the handler: `objects`, `watches`,
`scale`, `pod_logs` or `health`. `urls`, `query`, `negotiation` and `bodies` parse a request; `rendering`, `responses`
and `streams` write the response. Objects are validated, and authorization is decided, elsewhere.
"""
