"""The tests that somebody writes first. Each passes with right code, and has a twin with a fault that fails clearly."""
