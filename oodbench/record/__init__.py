"""MLflow: what is kept of every study. The only room that imports it."""
