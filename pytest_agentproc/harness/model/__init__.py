"""The model: the player and the machine of the fakes in memory, without a process."""
