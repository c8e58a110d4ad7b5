"""The Python interface: what `oodbench.run` and its kin do, and what they give back."""
