"""The audit log, its events, and the policy that says what it has."""
