"""The commands of the command line, one file for each kind of work. Nothing heavy is imported before it is needed."""
