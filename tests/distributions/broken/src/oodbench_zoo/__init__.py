"""Plug-ins that are broken, each in its own way."""
