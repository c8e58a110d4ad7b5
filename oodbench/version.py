"""The version of oodbench."""

__version__ = "0.1.0"
