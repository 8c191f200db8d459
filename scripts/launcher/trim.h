// Gives back the memory that only starting needed.
//
// Starting touches most of the program's code and constants once, and each page that was touched stays mapped: more than
// half of what the process shows as resident. They are clean pages of the file, so a moment after the start they can be
// unmapped; what is needed again comes back from the page cache, a few pages at a time. On a busy machine a start takes
// longer than that moment, so it is done again later.
//
// The program itself cannot do this, and nothing may wait for it: a thread of the launcher's own sleeps, unmaps and
// ends. It has no thread-local storage and takes no signals, so neither the C library nor the program can notice it.
#ifndef TRIM_H
#define TRIM_H

#include "image.h"
#include "text.h"

static const int64_t trim_pauses[] = {1, 4, 25}; // seconds

static struct image trimmed;
static char trim_stack[4096] __attribute__((aligned(16)));

__attribute__((visibility("hidden"), used)) _Noreturn void trim(void) {
  for (uint64_t pause = 0; pause < sizeof trim_pauses / sizeof *trim_pauses; pause++) {
    sys_sleep(trim_pauses[pause]);
    for (uint64_t i = 0; i < trimmed.constant_count; i++)
      sys_madvise(trimmed.constants[i].start, trimmed.constants[i].size, MADV_DONTNEED);
  }
  sys_exit_thread();
}

// Only ranges that are never written may be given here: what differs from the file would be lost. Node.js replaces its
// code by a copy in anonymous memory when it is told to use large pages.
static void trim_later(const struct image *image, char **environment) {
  for (; *environment; environment++)
    if (starts_with(*environment, "NODE_OPTIONS=") && contains(*environment, "largepages")) return;
  trimmed = *image;
  uint64_t all = ~(uint64_t)0, before;
  if (sys_block_signals(&all, &before) < 0) return;
  sys_start_thread(trim, trim_stack + sizeof trim_stack);
  sys_block_signals(&before, 0);
}

#endif
