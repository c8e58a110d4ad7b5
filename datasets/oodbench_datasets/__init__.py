"""The datasets that come with oodbench, one file each. They use the same door as everybody else's."""
