"""Executable fakes: their files, their starts and their logs, and the broker that ends them with the harness."""
