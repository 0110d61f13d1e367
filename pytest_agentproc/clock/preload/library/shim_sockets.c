/* Sockets: what the kernel would do with them by its own clock, and which of them may lead out of the tree. */
#include "shim.h"
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>

/* How long a descriptor may be read without an answer (SO_RCVTIMEO); Rust's set_read_timeout is that. Higher numbers
 * are left to the kernel: then holders.c names the program. */
#define TIMED_DESCRIPTORS 4096
static _Atomic int64_t read_timeouts[TIMED_DESCRIPTORS];
static _Atomic int has_read_timeouts;

/* Without this a socket holds small pieces back until the kernel's clock lets their receipt be confirmed: 40 ms in
 * which everybody is blocked, and time would move although bytes are on their way. */
EXPORT int socket(int family, int type, int protocol) {
  int on = 1, descriptor = (int)CALL(SYS_socket, family, type, protocol);
  if (shim_page && descriptor >= 0 && (family == AF_INET || family == AF_INET6) && (type & 15) == SOCK_STREAM)
    CALL(SYS_setsockopt, descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return descriptor;
}

static int set_read_timeout(int descriptor, const struct timeval *time) {
  atomic_store(&read_timeouts[descriptor], time->tv_sec * SECOND + time->tv_usec * 1000LL);
  atomic_store(&has_read_timeouts, 1);
  return 0;
}

EXPORT int setsockopt(int descriptor, int level, int name, const void *value, socklen_t size) {
  if (shim_page && level == SOL_SOCKET && name == SO_RCVTIMEO && size >= sizeof(struct timeval) && descriptor >= 0 &&
      descriptor < TIMED_DESCRIPTORS)
    return set_read_timeout(descriptor, value);
  return (int)CALL(SYS_setsockopt, descriptor, level, name, value, size);
}

void shim_forget_read_timeout(int descriptor) {
  if (atomic_load(&has_read_timeouts) && descriptor >= 0 && descriptor < TIMED_DESCRIPTORS)
    atomic_store(&read_timeouts[descriptor], 0);
}

/* Wait until there is something to read: 0 if the time for that is over. */
static int is_readable(int descriptor, int flags) {
  if (!shim_page || !atomic_load(&has_read_timeouts) || descriptor < 0 || descriptor >= TIMED_DESCRIPTORS) return 1;
  int64_t left = atomic_load(&read_timeouts[descriptor]);
  if (!left || flags & MSG_DONTWAIT || CALL(SYS_fcntl, descriptor, F_GETFL) & O_NONBLOCK) return 1;
  struct pollfd seen = {.fd = descriptor, .events = POLLIN};
  struct timespec time = shim_timespec(left);
  int ready = ppoll(&seen, 1, &time, NULL);
  if (!ready) errno = EAGAIN;
  return ready > 0;
}

EXPORT ssize_t read(int descriptor, void *bytes, size_t size) {
  return is_readable(descriptor, 0) ? CALL(SYS_read, descriptor, bytes, size) : -1;
}

EXPORT ssize_t recvfrom(int descriptor, void *restrict bytes, size_t size, int flags, struct sockaddr *restrict address,
                        socklen_t *restrict length) {
  return is_readable(descriptor, flags) ? CALL(SYS_recvfrom, descriptor, bytes, size, flags, address, length) : -1;
}

EXPORT ssize_t recv(int descriptor, void *bytes, size_t size, int flags) {
  return recvfrom(descriptor, bytes, size, flags, NULL, NULL);
}

EXPORT ssize_t recvmsg(int descriptor, struct msghdr *message, int flags) {
  return is_readable(descriptor, flags) ? CALL(SYS_recvmsg, descriptor, message, flags) : -1;
}

EXPORT ssize_t readv(int descriptor, const struct iovec *pieces, int count) {
  return is_readable(descriptor, 0) ? CALL(SYS_readv, descriptor, pieces, count) : -1;
}

/* Where a datagram goes is noted: its answer may come from outside, and the socket does not say so. */
static void note_destination(int descriptor, const struct sockaddr *to) {
  struct stat socket;
  if (shim_page && to && (to->sa_family == AF_INET || to->sa_family == AF_INET6) && !fstat(descriptor, &socket))
    page_note_destination(shim_page, socket.st_ino, to);
}

EXPORT ssize_t sendto(int descriptor, const void *bytes, size_t size, int flags, const struct sockaddr *to,
                      socklen_t length) {
  note_destination(descriptor, to);
  return CALL(SYS_sendto, descriptor, bytes, size, flags, to, length);
}

EXPORT ssize_t sendmsg(int descriptor, const struct msghdr *message, int flags) {
  note_destination(descriptor, message ? message->msg_name : NULL);
  return CALL(SYS_sendmsg, descriptor, message, flags);
}

EXPORT int sendmmsg(int descriptor, struct mmsghdr *messages, unsigned count, int flags) {
  for (unsigned i = 0; i < count; i++) note_destination(descriptor, messages[i].msg_hdr.msg_name);
  return (int)CALL(SYS_sendmmsg, descriptor, messages, count, flags);
}

EXPORT int connect(int descriptor, const struct sockaddr *address, socklen_t size) {
  if (shim_page) atomic_fetch_add(&shim_page->connections, 1);
  return (int)CALL(SYS_connect, descriptor, address, size);
}

EXPORT int accept4(int descriptor, struct sockaddr *address, socklen_t *size, int flags) {
  if (!is_readable(descriptor, 0)) return -1;
  int accepted = (int)CALL(SYS_accept4, descriptor, address, size, flags);
  if (shim_page && accepted >= 0) atomic_fetch_add(&shim_page->connections, 1);
  return accepted;
}

EXPORT int accept(int descriptor, struct sockaddr *address, socklen_t *size) {
  return accept4(descriptor, address, size, 0);
}
