"""Many trainings, one tensor program."""
