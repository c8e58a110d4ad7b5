"""Values that people set, each declared once with its type, default, help and check."""
