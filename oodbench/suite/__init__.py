"""Many boards at once, described in a file."""
