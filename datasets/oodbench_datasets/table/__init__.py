"""A table of the user's own as a dataset."""
