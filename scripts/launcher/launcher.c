// The front of the static executable. It needs no C library and no dynamic loader on the machine, because it brings
// both: behind it in the same file are a dynamically linked program, the dynamic loader and the program's libraries.
//
//   1. The program and the loader are mapped from the executable's own file.
//   2. Each library is copied into a memfd, for the loader can only open files. It finds them through LD_PRELOAD; the
//      program's own requirements are then met, since a library is known by its SONAME. Its C library is told to keep
//      all memory in one arena.
//   3. The loader is entered as the kernel would enter it: a stack with arguments, environment and auxiliary vector.
//   4. The loader is told that the program starts at `program_entry`. When it comes there all libraries are loaded, and
//      the program gets back the environment as the caller gave it, with the hand-over gone: no child can inherit it.
//   5. A moment later, memory that only starting needed is given back (trim.h).
//
// Under another name it is a process that only starts other programs (starter.h).
//
// The loader sees none of the caller's LD_* variables: they are meant for programs linked on this machine, and children
// still get them.

#include "image.h"
#include "memory.h"
#include "payload.h"
#include "starter.h"
#include "system.h"
#include "text.h"
#include "trim.h"

enum { AT_NULL = 0, AT_PHDR = 3, AT_PHNUM = 5, AT_PAGESZ = 6, AT_BASE = 7, AT_ENTRY = 9, AT_UID = 11,
       AT_EUID = 12, AT_GID = 13, AT_EGID = 14, AT_SECURE = 23 };

struct auxiliary {
  uint64_t type, value;
};

// Volatile: its content is filled in after the compiler has seen it.
static const volatile struct payload payload __attribute__((section(".payload"), used)) = {PAYLOAD_MAGIC, {{1, 1, ""}}};

// What has to be known when the loader is done.
static struct {
  struct image program;
  char **environment; // the program's; it begins with the hand-over
  char **original;
  struct auxiliary *entry_value, *secure_value;
  uint64_t secure;
  long libraries[PAYLOAD_PARTS];
  int library_count;
} later;

static char preload[32 + PAYLOAD_PARTS * 32];

// Each of the program's threads would get an arena of malloc's of its own, which nobody else can use what is free in,
// and all of which a fork copies. Its threads hardly ever want memory at the same moment. The loader writes into it.
static char tunables[] = "GLIBC_TUNABLES=glibc.malloc.arena_max=1";

static char *append(char *to, const char *text) {
  while (*text) *to++ = *text++;
  *to = 0;
  return to;
}

static char *append_number(char *to, unsigned long number) {
  char digits[24];
  int at = sizeof digits - 1;
  digits[at] = 0;
  do digits[--at] = (char)('0' + number % 10);
  while (number /= 10);
  return append(to, digits + at);
}

static _Noreturn void fail(const char *what, long error) {
  char line[256];
  char *end = append(append(line, "switchboard: cannot start: "), what);
  if (error) end = append(append_number(append(end, " (error "), (unsigned long)-error), ")");
  end = append(end, "\n");
  sys_write(2, line, (uint64_t)(end - line));
  sys_exit(127);
}

static long open_self(void) {
  long fd = sys_open("/proc/self/exe");
  if (fd == -ENOENT || fd == -ENOTDIR) fail("/proc is not mounted here (mount -t proc proc /proc)", 0);
  if (fd < 0) fail("its own file cannot be read", fd);
  return fd;
}

// Sealed against execution where the kernel knows that (6.3): a machine may refuse any other memfd (vm.memfd_noexec).
static long create_memfd(const char *name) {
  long fd = sys_memfd_create(name, MFD_CLOEXEC | MFD_NOEXEC_SEAL);
  if (fd == -EINVAL) fd = sys_memfd_create(name, MFD_CLOEXEC);
  if (fd < 0) fail("cannot create a memfd", fd);
  return fd;
}

static long copy_to_memfd(long self, const char *name, uint64_t offset, uint64_t size) {
  long fd = create_memfd(name);
  long from = sys_mmap(0, size, PROT_READ, MAP_PRIVATE, self, offset);
  if (from < 0 && from > -4096) fail("cannot map a library", from);
  for (uint64_t done = 0; done < size;) {
    long written = sys_write(fd, (char *)from + done, size - done);
    if (written <= 0) fail("cannot copy a library to memory", written);
    done += (uint64_t)written;
  }
  sys_munmap((uintptr_t)from, size);
  return fd;
}

static void hand_over_libraries(long self) {
  char *end = append(preload, "LD_PRELOAD=");
  for (int i = 2; i < PAYLOAD_PARTS && payload.parts[i].size; i++) {
    long fd = copy_to_memfd(self, (const char *)payload.parts[i].name, payload.parts[i].offset, payload.parts[i].size);
    later.libraries[later.library_count++] = fd;
    if (i > 2) end = append(end, ":");
    end = append_number(append(end, "/proc/self/fd/"), (unsigned long)fd);
  }
}

static int is_loader_variable(const char *variable) { return starts_with(variable, "LD_"); }

// What the loader would take out of the environment of a program that has more rights than its caller.
static int is_unsafe(const char *variable) {
  return later.secure && (is_loader_variable(variable) || starts_with(variable, "GLIBC_TUNABLES="));
}

static struct auxiliary *find(struct auxiliary *vector, uint64_t type) {
  for (; vector->type != AT_NULL; vector++)
    if (vector->type == type) return vector;
  return 0;
}

static uint64_t value_of(struct auxiliary *vector, uint64_t type) {
  struct auxiliary *found = find(vector, type);
  return found ? found->value : 0;
}

// The last environment variable's place is followed by NULL, and NULL by the auxiliary vector.
static struct auxiliary *vector_behind(char **environment) {
  while (*environment) environment++;
  return (struct auxiliary *)(environment + 1);
}

enum { HAND_OVER = 2 };

// Copies the stack that the kernel made, with the variables of the hand-over before the caller's, whose own settings of
// the C library so come last and count. A hidden variable leaves an empty string, not a gap: the loader finds the
// auxiliary vector behind the first NULL, and its place is needed later.
static struct auxiliary *copy_stack(uint64_t *to, const uint64_t *from) {
  uint64_t before_environment = from[0] + 2;
  for (uint64_t i = 0; i < before_environment; i++) *to++ = *from++;
  later.environment = (char **)to;
  later.original = (char **)from;
  *to++ = (uint64_t)preload;
  *to++ = (uint64_t)tunables;
  for (; *from; from++) {
    char *variable = (char *)*from;
    *to++ = (uint64_t)(is_loader_variable(variable) || is_unsafe(variable) ? "" : variable);
  }
  *to++ = *from++;
  struct auxiliary *vector = (struct auxiliary *)to;
  do {
    *to++ = *from++;
    *to++ = *from++;
  } while (to[-2] != AT_NULL);
  return vector;
}

static void describe(struct auxiliary *vector, const struct image *program, const struct image *loader) {
  for (; vector->type != AT_NULL; vector++) {
    switch (vector->type) {
      case AT_PHDR: vector->value = program->headers; break;
      case AT_PHNUM: vector->value = program->count; break;
      case AT_BASE: vector->value = loader->base; break;
      case AT_ENTRY:
        later.entry_value = vector;
        vector->value = (uint64_t)program_entry;
        break;
      // A loader in secure mode takes no LD_PRELOAD with a path. SELinux sets this on most changes of domain.
      case AT_SECURE:
        later.secure_value = vector;
        vector->value = 0;
        break;
    }
  }
}

// Called by `program_entry`: libraries are loaded and initialised, the program itself has not run. Returns its entry.
__attribute__((visibility("hidden"), used)) uintptr_t settle(void) {
  char **to = later.environment;
  for (char **from = later.original; *from; from++)
    if (!is_unsafe(*from)) *to++ = *from;
  *to = 0;
  for (int i = 0; i < later.library_count; i++) sys_close(later.libraries[i]);
  later.entry_value->value = later.program.entry;
  if (later.secure_value) later.secure_value->value = later.secure;
  trim_later(&later.program, later.environment);
  return later.program.entry;
}

__attribute__((visibility("hidden"), used)) _Noreturn void launch(uint64_t *stack) {
  struct auxiliary *vector = vector_behind((char **)stack + stack[0] + 2);
  uint64_t page = value_of(vector, AT_PAGESZ);
  if (!page || !find(vector, AT_PHDR) || !find(vector, AT_ENTRY)) fail("the auxiliary vector is incomplete", 0);
  // Rights given by the file's mode would reach whatever the caller's variables make the program do.
  if (value_of(vector, AT_UID) != value_of(vector, AT_EUID) || value_of(vector, AT_GID) != value_of(vector, AT_EGID))
    fail("it must not be installed set-user-id or set-group-id", 0);
  later.secure = value_of(vector, AT_SECURE);
  const char *name = (const char *)stack[1];
  if (stack[0] == 1 && starts_with(name, starter_name) && !name[sizeof starter_name - 1]) start_programs();

  long self = open_self();
  later.program = map_image(self, payload.parts[0].offset, page);
  struct image loader = map_image(self, payload.parts[1].offset, page);
  hand_over_libraries(self);
  sys_close(self);

  while (vector->type != AT_NULL) vector++;
  uint64_t words = (uint64_t)((uint64_t *)(vector + 1) - stack) + HAND_OVER;
  uint64_t *copy = __builtin_alloca_with_align(round_up(words * sizeof *copy, 16), 128);
  describe(copy_stack(copy, stack), &later.program, &loader);
  enter(loader.entry, copy);
}
