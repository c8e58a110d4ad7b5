"""What authors of methods and datasets write against, and how their plug-ins are found."""
