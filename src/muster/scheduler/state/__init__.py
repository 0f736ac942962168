"""The owners of the mutable scheduling state: one object for each kind of state."""
