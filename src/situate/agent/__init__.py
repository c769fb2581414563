"""The node agent, situate's kubelet: it runs the pods bound to its node and reports their status. It places no pods.

Hollow nodes only simulate their pods; thousands of them fit into one process.
"""
