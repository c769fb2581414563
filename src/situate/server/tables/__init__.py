"""Tables, as `kubectl get` asks for them. Each kind declares its own; `printers` looks them up.

Pure: no HTTP and no clock.
"""
