"""Results that are handed in: packed into one file, verified elsewhere, shown beside others' without running them."""
