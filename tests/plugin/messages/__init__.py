"""Tests of what a failed test says of its cause, word for word."""
