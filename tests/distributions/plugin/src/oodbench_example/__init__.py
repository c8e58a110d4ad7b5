"""A third party's plug-ins."""
