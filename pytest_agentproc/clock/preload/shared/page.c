/* Claims and frees the slots of the page, and notes where datagrams go: by a thread for itself, and by the coordinator for
 * a thread that it traces. */
#include "page.h"
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

struct slot *page_claim(struct page *page, int tid, int pid, int kind) {
  for (int i = 0; i < SLOTS; i++) {
    struct slot *slot = &page->slots[i];
    int free = 0, top = atomic_load(&page->top);
    if (atomic_load(&slot->tid) || !atomic_compare_exchange_strong(&slot->tid, &free, tid)) continue;
    atomic_store(&slot->deadline, NEVER);
    atomic_store(&slot->granted, 0);
    atomic_store(&slot->interval, 0);
    atomic_store(&slot->order, 0);
    atomic_store(&slot->holds, 0);
    atomic_store(&slot->condition, NULL);
    atomic_store(&slot->notify, NULL);
    slot->signal = slot->thread = slot->is_dated = slot->is_inherited = 0;
    atomic_store(&slot->kind, kind);
    atomic_store(&slot->pid, pid); /* last: the coordinator takes a slot without a process for a stranger's */
    while (i >= top && !atomic_compare_exchange_weak(&page->top, &top, i + 1)) {}
    return slot;
  }
  return NULL;
}

void page_free(struct slot *slot) {
  atomic_store(&slot->holds, 0);
  atomic_store(&slot->deadline, NEVER);
  atomic_store(&slot->pid, 0);
  atomic_store(&slot->tid, 0);
}

void page_note_destination(struct page *page, uint64_t inode, const struct sockaddr *to) {
  struct destination new = {.inode = inode, .is_long = to->sa_family == AF_INET6};
  if (to->sa_family == AF_INET) {
    const struct sockaddr_in *in = (const void *)to;
    memcpy(new.address, &in->sin_addr, sizeof in->sin_addr);
    new.port = ntohs(in->sin_port);
  } else if (new.is_long) {
    const struct sockaddr_in6 *in = (const void *)to;
    memcpy(new.address, &in->sin6_addr, sizeof in->sin6_addr);
    new.port = ntohs(in->sin6_port);
  } else {
    return;
  }
  for (int i = 0; i < DESTINATIONS; i++)
    if (!memcmp(&page->destinations[i], &new, sizeof new)) return;
  page->destinations[atomic_fetch_add(&page->destination_count, 1) % DESTINATIONS] = new;
  atomic_fetch_add(&page->connections, 1);
}
