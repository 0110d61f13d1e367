/* Looks into program files: at the loader that they ask for. Shared by the shim and the coordinator. */
#define _GNU_SOURCE
#include "image.h"
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int reads(int file, void *into, size_t size, off_t at) { return pread(file, into, size, at) == (ssize_t)size; }

static int asks_for_musl(int file) {
  Elf64_Ehdr header;
  Elf64_Phdr segment;
  char loader[64] = "";
  if (!reads(file, &header, sizeof header, 0) || memcmp(header.e_ident, ELFMAG, SELFMAG)) return 0;
  for (int i = 0; i < header.e_phnum; i++) {
    if (!reads(file, &segment, sizeof segment, (off_t)(header.e_phoff + (size_t)i * sizeof segment))) return 0;
    if (segment.p_type != PT_INTERP) continue;
    return pread(file, loader, sizeof loader - 1, (off_t)segment.p_offset) > 0 && strstr(loader, "/ld-musl") != NULL;
  }
  return 0;
}

static int looks_like_musl(const char *path, int depth) {
  char line[256] = "";
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), result;
  if (file < 0) return 0;
  if (depth && pread(file, line, sizeof line - 1, 0) > 2 && line[0] == '#' && line[1] == '!') {
    char *program = line + 2 + strspn(line + 2, " \t");
    program[strcspn(program, " \t\n")] = 0;
    result = looks_like_musl(program, depth - 1);
  } else {
    result = asks_for_musl(file);
  }
  close(file);
  return result;
}

int is_for_musl(const char *path) {
  int error = errno, result = looks_like_musl(path, 2);
  errno = error;
  return result;
}

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
