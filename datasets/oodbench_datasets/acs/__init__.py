"""Census tables: the files, how they are read, and the datasets made of them."""
