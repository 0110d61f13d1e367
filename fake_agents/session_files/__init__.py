"""The session files of the CLIs: each module has the names and the lines of one; `disk` has what all share."""
