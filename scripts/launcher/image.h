// Maps an ELF image from its place inside a larger file, as the kernel's execve does for a file of its own
// (System V gABI, "Program Header"; Linux fs/binfmt_elf.c): every page stays backed by the file.
#ifndef IMAGE_H
#define IMAGE_H

#include "system.h"

struct elf_header {
  unsigned char ident[16];
  uint16_t type, machine;
  uint32_t version;
  uint64_t entry, phoff, shoff;
  uint32_t flags;
  uint16_t ehsize, phentsize, phnum, shentsize, shnum, shstrndx;
};

struct program_header {
  uint32_t type, flags;
  uint64_t offset, vaddr, paddr, filesz, memsz, align;
};

enum { ET_EXEC = 2, ET_DYN = 3, PT_LOAD = 1 };
enum { PF_X = 1, PF_W = 2, PF_R = 4 };
enum { MAX_HEADERS = 32, MAX_CONSTANTS = 8 };

struct range {
  uintptr_t start;
  uint64_t size;
};

struct image {
  uintptr_t base;    // what is added to every address in the file; 0 for a program with fixed addresses
  uintptr_t entry;   // where it starts
  uintptr_t headers; // its program headers in memory
  uint64_t count;    // how many
  struct range constants[MAX_CONSTANTS]; // whole pages that are never written
  uint64_t constant_count;
};

static _Noreturn void fail(const char *what, long error);

static uint64_t round_down(uint64_t value, uint64_t unit) { return value & ~(unit - 1); }
static uint64_t round_up(uint64_t value, uint64_t unit) { return round_down(value + unit - 1, unit); }

// Reserves the whole range first, so that its segments can land neither on a mapping that exists nor apart.
static uintptr_t reserve(uint16_t type, uint64_t low, uint64_t high, uint64_t align) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  if (type == ET_EXEC) {
    long at = sys_mmap(low, high - low, PROT_NONE, flags | MAP_FIXED_NOREPLACE, -1, 0);
    if (at < 0 && at > -4096) fail("cannot reserve the program's address range", at);
    // A kernel before 4.17 takes the flag for a hint.
    if ((uint64_t)at != low) fail("the program's address range is taken", 0);
    return 0;
  }
  long at = sys_mmap(0, high - low + align, PROT_NONE, flags, -1, 0);
  if (at < 0 && at > -4096) fail("cannot reserve an address range", at);
  return round_up((uint64_t)at, align) - low;
}

static void map_segment(long fd, uint64_t start, uintptr_t base, const struct program_header *header, uint64_t page) {
  int protection = (header->flags & PF_R ? PROT_READ : 0) | (header->flags & PF_W ? PROT_WRITE : 0) |
                   (header->flags & PF_X ? PROT_EXEC : 0);
  uintptr_t address = base + header->vaddr;
  uintptr_t low = round_down(address, page);
  uintptr_t file_end = address + header->filesz;
  uintptr_t end = round_up(address + header->memsz, page);
  uintptr_t anonymous = round_up(file_end, page);
  if (header->filesz == 0) anonymous = low;
  else {
    uint64_t offset = start + header->offset - (address - low);
    long at = sys_mmap(low, anonymous - low, protection, MAP_PRIVATE | MAP_FIXED, fd, offset);
    if (at < 0 && at > -4096) fail("cannot map a part of itself", at);
    if (header->memsz > header->filesz)
      for (volatile char *byte = (char *)file_end; byte < (char *)anonymous; byte++) *byte = 0;
  }
  if (end > anonymous) {
    long at = sys_mmap(anonymous, end - anonymous, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (at < 0 && at > -4096) fail("cannot map zeroed memory", at);
  }
}

static void note_constant(struct image *image, const struct program_header *header, uint64_t page) {
  if (header->flags & PF_W || image->constant_count == MAX_CONSTANTS) return;
  uintptr_t low = round_up(image->base + header->vaddr, page);
  uintptr_t end = round_down(image->base + header->vaddr + header->filesz, page);
  if (end <= low) return;
  image->constants[image->constant_count++] = (struct range){low, end - low};
}

// `start` is where the image begins in the file, in bytes; `page` the size of a page.
static struct image map_image(long fd, uint64_t start, uint64_t page) {
  struct elf_header elf;
  struct program_header headers[MAX_HEADERS];
  if (sys_pread(fd, &elf, sizeof elf, start) != sizeof elf) fail("cannot read a part of itself", 0);
  if (elf.machine != ELF_MACHINE || elf.phentsize != sizeof headers[0] || elf.phnum > MAX_HEADERS)
    fail("a part of it is damaged", 0);
  long size = elf.phnum * (long)sizeof headers[0];
  if (sys_pread(fd, headers, (uint64_t)size, start + elf.phoff) != size) fail("cannot read a part of itself", 0);

  uint64_t low = UINT64_MAX, high = 0, align = page;
  for (int i = 0; i < elf.phnum; i++) {
    if (headers[i].type != PT_LOAD) continue;
    uint64_t first = round_down(headers[i].vaddr, page), last = round_up(headers[i].vaddr + headers[i].memsz, page);
    if (first < low) low = first;
    if (last > high) high = last;
    if (headers[i].align > align) align = headers[i].align;
  }
  if (high <= low) fail("a part of it is damaged", 0);

  struct image image = {.base = reserve(elf.type, low, high, align), .count = elf.phnum};
  image.entry = image.base + elf.entry;
  for (int i = 0; i < elf.phnum; i++) {
    const struct program_header *header = &headers[i];
    if (header->type != PT_LOAD) continue;
    map_segment(fd, start, image.base, header, page);
    note_constant(&image, header, page);
    if (elf.phoff >= header->offset && elf.phoff + (uint64_t)size <= header->offset + header->filesz)
      image.headers = image.base + header->vaddr + (elf.phoff - header->offset);
  }
  if (image.headers == 0) fail("a part of it is damaged", 0);
  return image;
}

#endif
