"""Takes every study of a run from planned to recorded, and goes on where an earlier run was stopped."""
