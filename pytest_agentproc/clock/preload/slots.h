/* The waiters, and which of them goes. */
#pragma once
#include "page.h"

extern struct page *page;

/* The waiter whose turn it is; `is_busy` says that one that had its turn has not noticed yet. All are blocked. */
struct slot *slots_next(int *is_busy);

/* Let a waiter go, and move time to its deadline. */
void slots_grant(struct slot *slot);

/* Let each wait go that began in real time and is due; gives the nanoseconds until the next one. */
int64_t slots_serve_real_time(void);

/* Whether a wait of real time may end what seems to be for ever. */
int slots_have_real_wait(void);

/* Whether a living thread has virtual time stand still. */
int slots_hold_time(void);

/* Only while everybody is blocked: the owner of a new slot may not have been seen yet. */
void slots_free_dead(void);

/* The same while nobody walks the tree. */
void slots_free_gone(void);
