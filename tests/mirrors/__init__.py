"""Every recording of a real CLI, mirrored by a scenario: the fake prints the same as the real one."""
