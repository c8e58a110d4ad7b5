from oodbench import LossMethod


class Twin(LossMethod):
    """A sound method that claims a name which another distribution has."""

    def loss(self, rows, hp):
        return rows.losses.mean(-1)
