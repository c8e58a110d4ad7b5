"""The built-in datasets, one file or folder each. They use the same plug-in interface as any other dataset."""
