"""The kinds of situate.dev/v1alpha1."""
