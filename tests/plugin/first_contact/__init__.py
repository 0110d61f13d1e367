"""The first tests of a new user. Each passes with right code, and has a twin with a fault that fails clearly."""
