"""A suite run again and compared with its baseline: `oodbench nightly`."""
