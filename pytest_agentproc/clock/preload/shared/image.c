/* Looks into program files: at the loader that they ask for. Shared by the shim and the coordinator. */
#define _GNU_SOURCE
#include "calls.h"
#include "image.h"
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOV_EAX 0xb8
#define LONGEST_WAY 32 /* so many bytes at most lie between the number and the call */
#define BLOCK 64

static int reads(int file, void *into, size_t size, off_t at) { return pread(file, into, size, at) == (ssize_t)size; }

enum image { OTHER, PLAIN, MUSL, BEYOND, GO };

/* Go's linker leaves a note whose owner is "Go", but for one with `-buildid=`. */
static int is_note_of_go(int file, const Elf64_Phdr *segment) {
  char owner[16] = "";
  return pread(file, owner, sizeof owner, (off_t)segment->p_offset) == sizeof owner && !memcmp(owner + 12, "Go\0", 4);
}

/* Whether a section has a name that begins so. Bun is a glibc program that makes system calls of its own. */
static int has_section(int file, const Elf64_Ehdr *header, const char *name) {
  Elf64_Shdr names;
  char text[4096];
  if (header->e_shstrndx == SHN_UNDEF || header->e_shentsize != sizeof names) return 0;
  if (!reads(file, &names, sizeof names, (off_t)(header->e_shoff + header->e_shstrndx * sizeof names))) return 0;
  ssize_t size = pread(file, text, names.sh_size < sizeof text ? names.sh_size : sizeof text, (off_t)names.sh_offset);
  return size > 0 && memmem(text, (size_t)size, name, strlen(name)) != NULL;
}

/* System calls that tell the time, wait for it or arm a timer, by their numbers. */
static int is_about_time(uint32_t number) {
  switch (number) {
#if defined(__x86_64__)
  case SYS_poll:
  case SYS_select:
  case SYS_alarm:
  case SYS_epoll_wait:
  case SYS_gettimeofday:
  case SYS_time:
#endif
  case SYS_nanosleep:
  case SYS_getitimer:
  case SYS_setitimer:
  case SYS_futex:
  case SYS_futex_waitv:
  case SYS_semtimedop:
  case SYS_io_getevents:
  case SYS_io_pgetevents:
  case SYS_timer_create:
  case SYS_timer_settime:
  case SYS_timer_gettime:
  case SYS_timer_delete:
  case SYS_clock_gettime:
  case SYS_clock_nanosleep:
  case SYS_mq_timedsend:
  case SYS_mq_timedreceive:
  case SYS_pselect6:
  case SYS_ppoll:
  case SYS_epoll_pwait:
  case SYS_epoll_pwait2:
  case SYS_rt_sigtimedwait:
  case SYS_timerfd_settime:
  case SYS_timerfd_gettime:
  case SYS_recvmmsg: return 1;
  default: return 0;
  }
}

/* Whether two bytes are a system call whose number was put into eax just before: `mov $number, %eax`. */
static int calls_about_time(const unsigned char *code, size_t at) {
  uint32_t number;
  for (size_t back = 5; back <= LONGEST_WAY && back <= at; back++) {
    if (code[at - back] != MOV_EAX) continue;
    memcpy(&number, code + at - back + 1, sizeof number);
    if (is_about_time(number)) return 1;
  }
  return 0;
}

/* A loop that the compiler makes 16 bytes wide: a program has 30 million bytes, and each start of it comes here. */
__attribute__((optimize("O3"))) static int has_call(const unsigned char *block) {
  unsigned char any = 0;
  for (int i = 0; i < BLOCK; i++) any |= (unsigned char)((block[i] == 0x0f) & (block[i + 1] == 0x05));
  return any;
}

/* Whether a program for glibc makes calls about time without glibc, as Rust's rustix does. Node, Python, perl, git and
 * rustc do not. A program that is taken for one by mistake is traced: its time is exact all the same. */
static int makes_own_calls(int file, const Elf64_Phdr *segment) {
#if defined(__x86_64__)
  size_t size = segment->p_filesz, page_offset = segment->p_offset % 4096;
  int found = 0;
  struct stat info;
  if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X)) return 0;
  if (fstat(file, &info) || segment->p_offset >= (size_t)info.st_size) return 0;
  if (size > (size_t)info.st_size - segment->p_offset) size = (size_t)info.st_size - segment->p_offset;
  unsigned char *code = mmap(NULL, size + page_offset, PROT_READ, MAP_PRIVATE, file, (off_t)(segment->p_offset - page_offset));
  if (code == MAP_FAILED) return 0;
  size += page_offset;
  for (size_t at = 0; at + BLOCK < size && !found; at += BLOCK) {
    if (!has_call(code + at)) continue;
    for (size_t i = at; i < at + BLOCK; i++) found |= code[i] == 0x0f && code[i + 1] == 0x05 && calls_about_time(code, i);
  }
  munmap(code, size);
  return found;
#else
  return (void)file, (void)segment, 0;
#endif
}

static enum image image_of(int file) {
  Elf64_Ehdr header;
  Elf64_Phdr segment;
  char loader[64] = "";
  int is_go = 0, makes_calls = 0;
  if (!reads(file, &header, sizeof header, 0) || memcmp(header.e_ident, ELFMAG, SELFMAG)) return OTHER;
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return OTHER;
  for (int i = 0; i < header.e_phnum; i++) {
    if (!reads(file, &segment, sizeof segment, (off_t)(header.e_phoff + (size_t)i * sizeof segment))) return OTHER;
    makes_calls |= makes_own_calls(file, &segment);
    if (segment.p_type == PT_NOTE) is_go |= is_note_of_go(file, &segment);
    if (segment.p_type != PT_INTERP) continue;
    if (pread(file, loader, sizeof loader - 1, (off_t)segment.p_offset) > 0 && strstr(loader, "/ld-musl")) return MUSL;
  }
  if (is_go || has_section(file, &header, ".go.buildinfo")) return GO;
  /* The coordinator holds the code of vclock.c for others. Traced, it would take the stops of its own tree for rest. */
  if (makes_calls && has_section(file, &header, "vcode_clock_gettime")) return PLAIN;
  if (!*loader || makes_calls || has_section(file, &header, ".bun")) return BEYOND;
  return PLAIN;
}

static enum image looks_like(const char *path, int depth) {
  char line[256] = "";
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  enum image result;
  if (file < 0) return OTHER;
  if (depth && pread(file, line, sizeof line - 1, 0) > 2 && line[0] == '#' && line[1] == '!') {
    char *program = line + 2 + strspn(line + 2, " \t");
    program[strcspn(program, " \t\n")] = 0;
    result = looks_like(program, depth - 1);
  } else {
    result = image_of(file);
  }
  close(file);
  return result;
}

int is_for_musl(const char *path) {
  int error = errno, result = looks_like(path, 2) == MUSL;
  errno = error;
  return result;
}

int is_beyond_shim(const char *path) {
  struct stat found;
  int error = errno, result = 0;
  if (!access(path, X_OK) && !stat(path, &found) && !(found.st_mode & (S_ISUID | S_ISGID)) && !strstr(path, "/ld-linux"))
    result = looks_like(path, 2) >= MUSL;
  errno = error;
  return result;
}

int is_go(const char *path) { return looks_like(path, 0) == GO; }

const char *find_program(const char *name, char *path, int size) {
  const char *folders = getenv("PATH");
  int error = errno;
  if (strchr(name, '/') || !folders) return name;
  for (const char *folder = folders; folder; folder = strchr(folder, ':') ? strchr(folder, ':') + 1 : NULL) {
    int length = (int)strcspn(folder, ":");
    if (length + (int)strlen(name) + 2 > size) continue;
    memcpy(path, folder, (size_t)length);
    path[length] = 0;
    strcat(strcat(path, length ? "/" : "./"), name);
    if (!access(path, X_OK)) break;
    path[0] = 0;
  }
  errno = error;
  return path[0] ? path : name;
}
