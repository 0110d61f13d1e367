/* Connections that lead out of the tree. */
#pragma once

/* Whether a process below is connected to one that is not. Each such process is named once.
 * `connections` is how often anybody below has connected or accepted: only then is there anything new to look for.
 * `listener` is the process whose connections count only while it waits for them; 0: there is none. All are blocked. */
int is_connected_outside(int connections, int listener);
