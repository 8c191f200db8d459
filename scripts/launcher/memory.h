// What compilers call for copies and initial values of structures, library or not (GCC manual, "Standards").
#ifndef MEMORY_H
#define MEMORY_H

#include <stddef.h>

__attribute__((visibility("hidden"), used)) void *memcpy(void *to, const void *from, size_t size) {
  for (size_t i = 0; i < size; i++) ((char *)to)[i] = ((const char *)from)[i];
  return to;
}

__attribute__((visibility("hidden"), used)) void *memset(void *to, int byte, size_t size) {
  for (size_t i = 0; i < size; i++) ((char *)to)[i] = (char)byte;
  return to;
}

#endif
