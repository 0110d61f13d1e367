"""Attacks on the kit: faults, floods and hostile input, each bounded and repeatable."""
