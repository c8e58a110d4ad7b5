"""Pieces that methods are made of, for everybody's methods."""
