"""How results are shown: tables in several formats, and progress in a terminal."""
