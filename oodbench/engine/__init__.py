"""Many trainings, one tensor program."""

import os

# Else the order in which MKL adds up depends on where an array lies in memory. MKL asks at its first product.
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")
