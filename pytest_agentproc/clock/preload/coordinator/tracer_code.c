/* What a traced program is made to do: system calls of ours, and another vDSO, whose clock is the page's.
 *
 * A reading by the vDSO is no system call, so no filter sees it. A stop at each one would cost 25 us. So code that reads
 * the page is written over the vDSO's functions (vclock.c), as a program begins. */
#define _GNU_SOURCE
#include "tracer.h"

#if defined(__x86_64__)

#include "vclock.h"
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static long word_at(int tid, unsigned long place) { return ptrace(PTRACE_PEEKDATA, tid, (void *)place, 0); }

/* A stopped program makes system calls of ours. Signals wait meanwhile; SIGSTOP, which cannot, comes again afterwards: to
 * send it at once would stop the program at it for ever. */

static uint64_t kept_mask;
static int has_kept_stop;

static void begin_calls(int tid) {
  uint64_t all = UINT64_MAX;
  has_kept_stop = 0;
  ptrace(PTRACE_GETSIGMASK, tid, (void *)sizeof kept_mask, &kept_mask);
  ptrace(PTRACE_SETSIGMASK, tid, (void *)sizeof all, &all);
}

static void end_calls(int tid) {
  ptrace(PTRACE_SETSIGMASK, tid, (void *)sizeof kept_mask, &kept_mask);
  if (has_kept_stop) syscall(SYS_tgkill, group_of(tid), tid, SIGSTOP);
}

static struct { int tid, status; } lost; /* it died meanwhile */

int take_lost(int *status) {
  int tid = lost.tid;
  *status = lost.status;
  lost.tid = 0;
  return tid;
}

static int go_to_call(int tid) {
  int status;
  for (;;) {
    if (ptrace(PTRACE_SYSCALL, tid, 0, 0)) return 0;
    while (waitpid(tid, &status, __WALL) < 0)
      if (errno != EINTR) return 0;
    if (!WIFSTOPPED(status)) {
      lost.tid = tid;
      lost.status = status;
      return 0;
    }
    if (WSTOPSIG(status) == (SIGTRAP | 0x80)) return 1;
    if (!(status >> 16) && WSTOPSIG(status) == SIGSTOP) has_kept_stop = 1;
  }
}

static long call(int tid, const registers *regs, unsigned long place, long number, unsigned long a, unsigned long b,
                 unsigned long c, unsigned long d, unsigned long e, unsigned long f) {
  registers new = *regs;
  new.rip = place;
  new.orig_rax = (unsigned long)-1;
  new.rax = (unsigned long)number;
  new.rdi = a, new.rsi = b, new.rdx = c, new.r10 = d, new.r8 = e, new.r9 = f;
  if (ptrace(PTRACE_SETREGS, tid, 0, &new) || !go_to_call(tid) || !go_to_call(tid)) return -EINTR;
  if (ptrace(PTRACE_GETREGS, tid, 0, &new)) return -EINTR;
  return (long)new.rax;
}

/* Take what a process has sent; anybody in this network namespace can send here, too. */
static int receive_file(int inbox, int pid) {
  int file = -1;
  for (;;) {
    char byte, control[256] __attribute__((aligned(8)));
    struct iovec bytes = {&byte, 1};
    struct msghdr header = {.msg_iov = &bytes, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct ucred sender = {0};
    int files[16], count = 0;
    if (recvmsg(inbox, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) < 0) return file;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(&header); part; part = CMSG_NXTHDR(&header, part)) {
      if (part->cmsg_type == SCM_CREDENTIALS) memcpy(&sender, CMSG_DATA(part), sizeof sender);
      if (part->cmsg_type != SCM_RIGHTS) continue;
      for (size_t i = 0; CMSG_LEN((i + 1) * sizeof(int)) <= part->cmsg_len && count < 16; i++)
        memcpy(&files[count++], CMSG_DATA(part) + i * sizeof(int), sizeof(int));
    }
    for (int i = 0; i < count; i++) {
      if (file < 0 && sender.pid == pid && !i) file = files[i];
      else close(files[i]);
    }
  }
}

/* Docker's seccomp profile lets a tracer do all but pidfd_getfd. So the thread, which stands at its call, sends the
 * descriptor itself, and the call is not made. */
static int send_descriptor(struct tracee *tracee, const registers *regs, int descriptor) {
  struct {
    struct msghdr header;
    struct sockaddr_un address;
    struct iovec bytes;
    struct { struct cmsghdr header; int descriptor; } control;
    char byte;
  } message;
  static int inbox = -1;
  static struct sockaddr_un address;
  static socklen_t length = sizeof address;
  int tid = tracee->tid;
  unsigned long place = tracee->area ? tracee->area + 64 : (regs->rsp - 128 - sizeof message) & ~15UL, syscall_at = regs->rip - 2;
  if (inbox < 0) {
    inbox = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    address.sun_family = AF_UNIX;
    int on = 1;
    if (inbox < 0 || setsockopt(inbox, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) || bind(inbox, (void *)&address, sizeof address.sun_family) ||
        getsockname(inbox, (void *)&address, &length))
      return -1;
  }
  memset(&message, 0, sizeof message);
  message.address = address;
  message.header = (struct msghdr){.msg_name = (void *)(place + offsetof(__typeof__(message), address)),
                                   .msg_namelen = length,
                                   .msg_iov = (void *)(place + offsetof(__typeof__(message), bytes)),
                                   .msg_iovlen = 1,
                                   .msg_control = (void *)(place + offsetof(__typeof__(message), control)),
                                   .msg_controllen = CMSG_LEN(sizeof(int))};
  message.bytes = (struct iovec){(void *)(place + offsetof(__typeof__(message), byte)), 1};
  message.control.header = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
  message.control.descriptor = descriptor;
  registers first = *regs;
  first.orig_rax = SYS_socket;
  first.rdi = AF_UNIX, first.rsi = SOCK_DGRAM | SOCK_CLOEXEC, first.rdx = 0;
  if (!put_memory(tid, place, &message, sizeof message)) return -1;
  if (ptrace(PTRACE_SETREGS, tid, 0, &first) || !go_to_call(tid) || ptrace(PTRACE_GETREGS, tid, 0, &first)) return -1;
  if ((long)first.rax < 0) return -1;
  long sent = call(tid, regs, syscall_at, SYS_sendmsg, first.rax, place, MSG_DONTWAIT, 0, 0, 0);
  call(tid, regs, syscall_at, SYS_close, first.rax, 0, 0, 0, 0, 0);
  if (sent < 0) return -1;
  return receive_file(inbox, tracee->pid);
}

/* As the shim does: a socket that holds small pieces back until their receipt is confirmed has bytes on their way by the
 * kernel's clock, while everybody is blocked. */
void send_at_once(struct tracee *tracee, const registers *regs) {
  int tid = tracee->tid, on = 1;
  unsigned long place = tracee->area ? tracee->area + 64 : (regs->rsp - 128 - sizeof on) & ~15UL;
  if ((long)regs->rax < 0 || !put_memory(tid, place, &on, sizeof on)) return;
  begin_calls(tid);
  call(tid, regs, regs->rip - 2, SYS_setsockopt, regs->rax, IPPROTO_TCP, TCP_NODELAY, place, sizeof on, 0);
  ptrace(PTRACE_SETREGS, tid, 0, regs);
  end_calls(tid);
}

int borrow_file(struct tracee *tracee, const registers *regs, int descriptor) {
  begin_calls(tracee->tid);
  int file = send_descriptor(tracee, regs, descriptor);
  end_calls(tracee->tid);
  return file;
}

/* A program that finds no vDSO asks the kernel for the time. The stack holds the number of arguments, the arguments, a
 * null, the environment, a null, and pairs of a type and a value. */
void hide_vdso(int tid) {
  registers regs;
  unsigned long place, step = sizeof(long);
  if (ptrace(PTRACE_GETREGS, tid, 0, &regs)) return;
  place = regs.rsp + ((unsigned long)word_at(tid, regs.rsp) + 2) * step;
  errno = 0;
  while (word_at(tid, place) && !errno) place += step;
  for (place += step; !errno; place += 2 * step) {
    long type = word_at(tid, place);
    if (type == AT_SYSINFO_EHDR) ptrace(PTRACE_POKEDATA, tid, (void *)place, (void *)AT_IGNORE);
    if (type == AT_SYSINFO_EHDR || type == AT_NULL) return;
  }
}

/* Write over memory that the program itself must not write. */
static int write_over(int tid, unsigned long place, const void *bytes, size_t size) {
  for (size_t i = 0; i < size; i += sizeof(long)) {
    long word = word_at(tid, place + i);
    memcpy(&word, (const char *)bytes + i, size - i < sizeof word ? size - i : sizeof word);
    if (ptrace(PTRACE_POKEDATA, tid, (void *)(place + i), (void *)word)) return 0;
  }
  return 1;
}

extern const char __start_vcode_clock_gettime[], __stop_vcode_clock_gettime[];
extern const char __start_vcode_gettimeofday[], __stop_vcode_gettimeofday[];

struct vdso { unsigned long base, call, functions[3], sizes[3]; };
static const char *const vdso_names[] = {"__vdso_clock_gettime", "__vdso_gettimeofday", "__vdso_time"};

static unsigned long find_vdso(int tid, const registers *regs) {
  unsigned long step = sizeof(long), place = regs->rsp + ((unsigned long)word_at(tid, regs->rsp) + 2) * step;
  errno = 0;
  while (word_at(tid, place) && !errno) place += step;
  for (place += step; !errno; place += 2 * step) {
    long type = word_at(tid, place);
    if (type == AT_NULL) return 0;
    if (type == AT_SYSINFO_EHDR) return (unsigned long)word_at(tid, place + step);
  }
  return 0;
}

/* Find its functions, and a system call within. A program may lead to anything in place of a vDSO: nothing is read beyond
 * what was copied. */
static int read_vdso(int tid, struct vdso *vdso) {
  static char image[2 * 4096 + 1];
  const Elf64_Ehdr *header = (void *)image;
  const char *end = image + sizeof image - 1;
  memset(image, 0, sizeof image);
  if (!get_memory(tid, vdso->base, image, sizeof image - 1) && !get_memory(tid, vdso->base, image, 4096)) return 0;
  const Elf64_Phdr *segments = (void *)(image + header->e_phoff);
  const Elf64_Dyn *dynamic = NULL;
  unsigned long symbols = 0, names = 0;
  if (header->e_phoff >= sizeof image || (const char *)(segments + header->e_phnum) > end) return 0;
  for (int i = 0; i < header->e_phnum; i++)
    if (segments[i].p_type == PT_DYNAMIC && segments[i].p_offset < sizeof image) dynamic = (void *)(image + segments[i].p_offset);
  for (; dynamic && (const char *)(dynamic + 1) <= end && dynamic->d_tag != DT_NULL; dynamic++) {
    if (dynamic->d_tag == DT_SYMTAB) symbols = dynamic->d_un.d_ptr;
    if (dynamic->d_tag == DT_STRTAB) names = dynamic->d_un.d_ptr;
  }
  if (!symbols || !names || symbols > names || names >= sizeof image) return 0;
  for (const Elf64_Sym *symbol = (void *)(image + symbols); (const char *)(symbol + 1) <= image + names; symbol++)
    for (int i = 0; i < 3; i++) {
      if (symbol->st_name >= sizeof image - names || strcmp(image + names + symbol->st_name, vdso_names[i])) continue;
      vdso->functions[i] = vdso->base + symbol->st_value;
      vdso->sizes[i] = symbol->st_size;
    }
  const char *found = memmem(image, sizeof image, "\x0f\x05", 2);
  vdso->call = found ? vdso->base + (unsigned long)(found - image) : 0;
  return found != NULL;
}

static int replace(int tid, const struct vdso *vdso, int which, const char *begin, const char *end, unsigned long area) {
  char code[512];
  size_t size = (size_t)(end - begin);
  uint64_t mark = AREA_MARK;
  if (size > vdso->sizes[which] || size > sizeof code) return 0;
  memcpy(code, begin, size);
  for (char *at; (at = memmem(code, size, &mark, sizeof mark));) memcpy(at, &area, sizeof area);
  return write_over(tid, vdso->functions[which], code, size);
}

/* Have the vDSO of a program that has just begun read the page. 0: it has no such vDSO, or not all that it takes. */
unsigned long give_clock(int tid) {
  static const char time_code[] = "\xb8\xc9\0\0\0\x0f\x05\xc3"; /* mov $SYS_time, %eax; syscall; ret */
  struct vdso vdso = {0};
  registers regs;
  char path[64];
  long area = -1, file = -1, mapped = -1;
  int done = 0;
  if (ptrace(PTRACE_GETREGS, tid, 0, &regs) || !(vdso.base = find_vdso(tid, &regs)) || !read_vdso(tid, &vdso)) return 0;
  begin_calls(tid);
  if (!go_to_call(tid) || ptrace(PTRACE_GETREGS, tid, 0, &regs)) { /* the end of its execve */
    end_calls(tid);
    return 0;
  }
  snprintf(path, sizeof path, "/proc/%d/fd/%d", getpid(), page_file);
  area = call(tid, &regs, vdso.call, SYS_mmap, 0, sizeof(struct area) + 4096, PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS, (unsigned long)-1, 0);
  if (area > 0 && put_memory(tid, (unsigned long)area, path, strlen(path) + 1))
    file = call(tid, &regs, vdso.call, SYS_openat, (unsigned long)AT_FDCWD, (unsigned long)area, O_RDWR | O_CLOEXEC, 0, 0, 0);
  if (file >= 0) {
    mapped = call(tid, &regs, vdso.call, SYS_mmap, (unsigned long)area + offsetof(struct area, head), 4096, PROT_READ,
                  MAP_SHARED | MAP_FIXED, (unsigned long)file, 0);
    call(tid, &regs, vdso.call, SYS_close, (unsigned long)file, 0, 0, 0, 0, 0);
  }
  if (mapped > 0) {
    char nothing[64] = "";
    done = put_memory(tid, (unsigned long)area, nothing, sizeof nothing) &&
           replace(tid, &vdso, 0, __start_vcode_clock_gettime, __stop_vcode_clock_gettime, (unsigned long)area) &&
           replace(tid, &vdso, 1, __start_vcode_gettimeofday, __stop_vcode_gettimeofday, (unsigned long)area) &&
           replace(tid, &vdso, 2, time_code, time_code + sizeof time_code - 1, 0);
  }
  ptrace(PTRACE_SETREGS, tid, 0, &regs);
  end_calls(tid);
  return done ? (unsigned long)area : 0;
}

#endif
