"""One method on one dataset: from what was asked for to what came out."""
