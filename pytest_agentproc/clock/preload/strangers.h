/* Whoever in the tree does not follow the page. */
#pragma once
#include "tree.h"

/* Whether time must pass as on the machine for now. Each reason is said once. */
int has_stranger(enum look look);
