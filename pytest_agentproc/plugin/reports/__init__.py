"""What a session shows of its runs: progress, results, pages, timelines and tracebacks."""
