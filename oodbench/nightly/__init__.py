"""A suite run again, and held against what it came to before: `oodbench nightly`."""
