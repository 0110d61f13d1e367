/* Connections that lead out of the tree. */
#pragma once

/* Whether a process below is connected to one that is not. Each such process is named once.
 * `connections` is how often anybody below has connected or accepted: only then is there anything new to look for. */
int is_connected_outside(int connections);
