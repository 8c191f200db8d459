// What is asked of strings.
#ifndef TEXT_H
#define TEXT_H

static int starts_with(const char *text, const char *prefix) {
  while (*prefix)
    if (*text++ != *prefix++) return 0;
  return 1;
}

static int contains(const char *text, const char *part) {
  for (; *text; text++)
    if (starts_with(text, part)) return 1;
  return 0;
}

#endif
