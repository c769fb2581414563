"""Who sends a request and whether they may: authentication, authorization, admission of rights, audit.

`setup` builds everything; `identity` is what a request passes. `authentication` uses `certificates`, `token_files` and
`service_account_tokens`; `authorization` uses `rbac` with its `rules`, and `node_authorizer`. `node_restriction` and
`escalation` are admission plugins. `create_handlers` answers `reviews` and `token_requests`. `authority` has the
server's own certificates, `bootstrap` the objects of a new cluster. Nothing here speaks HTTP.
"""
