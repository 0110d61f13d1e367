"""Real clients of the real CLIs, unmodified, against the fakes.

`FINDINGS.md` says what each does on which fault, `COMPARISON.md` how supervisors fare with the bundled scenarios.
"""
