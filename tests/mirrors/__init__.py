"""Every recording of a real CLI, mirrored by a scenario: the fake prints what the real one printed."""
