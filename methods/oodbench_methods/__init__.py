"""The built-in methods, one file each. They use the same plug-in interface as any other method."""
