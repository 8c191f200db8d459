// The table of what is appended to the launcher. scripts/executable.ts finds it in the linked launcher by its magic and
// fills it in, so that the parts are found at start without one read.
#ifndef PAYLOAD_H
#define PAYLOAD_H

#include <stdint.h>

#define PAYLOAD_MAGIC "switchboard-parts" // with its NUL and padding: 24 bytes
#define PAYLOAD_PARTS 14

struct part {
  uint64_t offset; // in bytes from the start of the file; a multiple of 64 KiB, the largest page size there is
  uint64_t size;   // bytes; 0 ends the table
  char name[48];   // a library's SONAME
};

// Part 0 is the program, part 1 the dynamic loader, all others are libraries.
struct payload {
  char magic[24];
  struct part parts[PAYLOAD_PARTS];
};

#endif
