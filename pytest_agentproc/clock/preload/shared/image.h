/* What can be said of a program before it is started. */
#pragma once

/* Whether a file is a program for musl, or a script for one: it cannot load a library for glibc, and would not start.
 * Nothing but the stack is used, and errno stays. */
int is_for_musl(const char *path);

/* Whether a file is a program, or a script for one, whose time the shim does not reach, and the tracer does: static, for
 * musl, Go, Bun. Setuid programs are none: they would have no privileges. */
int is_beyond_shim(const char *path);

int is_go(const char *path);

/* The file that a name stands for, found as execvp finds it; the name itself if there is none. */
const char *find_program(const char *name, char *path, int size);
