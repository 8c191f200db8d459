// Starts programs for the program: the launcher run under another name, `starter_name`, is a process of a few pages, of
// which a fork copies next to nothing. A fork of the program itself copies tens of megabytes of page tables, and it stands
// still meanwhile. The other side, and the only one that ever runs this, is src/backends/exec/starter.ts.
//
// It reads requests from standard input and tells on standard output what becomes of each. All numbers are of 32 bits and
// in the processor's order; each message begins with its size, without that number itself, and an id that requests choose.
//
//   request  id, count of arguments, count of variables, then strings, each ended by NUL: the file, as execvp(3) takes
//            it, the arguments from the zeroth on, and the environment. Without arguments: the output of `id` is not wanted.
//   answer   id, kind, then of
//              TELL_STARTED  the process id, which is that of its process group and session, too
//              TELL_FAILED   the error number
//              TELL_OUTPUT, TELL_ERRORS  what it has written
//              TELL_ENDED    the status of wait(2); what it has written itself was told before
//              TELL_CLOSED   nothing: it has ended, and nobody can write to its output any more. Always the last.
//
// Standard input of what it starts is empty. When its own input ends it is gone; what it has started lives on.
#ifndef STARTER_H
#define STARTER_H

#include "memory.h"
#include "system.h"
#include "text.h"

static const char starter_name[] = "switchboard-starter";

enum { TELL_STARTED = 1, TELL_FAILED, TELL_OUTPUT, TELL_ERRORS, TELL_ENDED, TELL_CLOSED };
enum { IN = 0, OUT = 1, CHILDREN = 128, REQUEST_BYTES = 65536, REQUEST_STRINGS = 1024, ANSWER_BYTES = 65536,
       PIPE_PIECES = 64 };
enum { FLAG_IN = 1, FLAG_GONE = 8 | 16 }; // POLLIN, POLLERR | POLLHUP

static struct child {
  uint32_t id;
  int32_t pid; // 0: this place is free, or the process has been reaped
  int32_t pipes[2];
  int taken, silent; // silent: it was told already that it could not be started
} children[CHILDREN];

static struct poll_entry {
  int32_t fd;
  int16_t wanted, happened;
} polled[2 + 2 * CHILDREN];

static char request[REQUEST_BYTES];
static uint32_t request_bytes;
static char answers[ANSWER_BYTES];
static uint32_t answer_bytes;
static char *strings[REQUEST_STRINGS + 3];
static volatile int32_t *start_error; // shared with what is just being started

static void flush(void) {
  for (uint32_t done = 0; done < answer_bytes;) {
    long written = sys_write(OUT, answers + done, answer_bytes - done);
    if (written <= 0) sys_exit(0);
    done += (uint32_t)written;
  }
  answer_bytes = 0;
}

// Gives the place for `size` bytes that belong to the answer.
static char *tell(uint32_t id, uint32_t kind, uint32_t size) {
  uint32_t header[3] = {size + 8, id, kind};
  if (answer_bytes + sizeof header + size > ANSWER_BYTES) flush();
  memcpy(answers + answer_bytes, header, sizeof header);
  char *place = answers + answer_bytes + sizeof header;
  answer_bytes += (uint32_t)sizeof header + size;
  return place;
}

static void tell_number(uint32_t id, uint32_t kind, uint32_t number) {
  memcpy(tell(id, kind, sizeof number), &number, sizeof number);
}

static void close_pipe(struct child *child, int which) {
  if (child->pipes[which] < 0) return;
  sys_close(child->pipes[which]);
  child->pipes[which] = -1;
}

static void finish(struct child *child) {
  if (!child->taken || child->pid || child->pipes[0] >= 0 || child->pipes[1] >= 0) return;
  if (!child->silent) tell(child->id, TELL_CLOSED, 0);
  child->taken = 0;
}

// The file, tried in every directory of PATH when it is only a name. Gives the error that says most.
static long execute(const char *file, char **arguments, char **environment) {
  static char path[8192];
  if (contains(file, "/")) return sys_execve(file, arguments, environment);
  const char *search = "";
  for (char **variable = environment; *variable; variable++)
    if (starts_with(*variable, "PATH=")) search = *variable + 5;
  long best = -ENOENT;
  for (;;) {
    uint32_t at = 0;
    for (; *search && *search != ':'; search++)
      if (at < sizeof path / 2) path[at++] = *search;
    if (at) path[at++] = '/';
    for (const char *name = file; *name && at < sizeof path - 1; name++) path[at++] = *name;
    path[at] = 0;
    long error = sys_execve(path, arguments, environment);
    if (error != -ENOENT && error != -ENOTDIR) best = error;
    if (error != -ENOENT && error != -ENOTDIR && error != -EACCES) return error;
    if (!*search++) return best;
  }
}

// In the new process, which is alone with its copy of everything but the files.
static _Noreturn void become(const int32_t *ends, const char *file, char **arguments, char **environment) {
  uint64_t none = 0;
  long null = sys_open("/dev/null");
  long failed = null < 0 ? null : sys_dup(null, 0);
  if (failed >= 0) failed = sys_dup(ends[0], 1);
  if (failed >= 0) failed = sys_dup(ends[1], 2);
  if (failed >= 0) {
    sys_setsid();
    sys_block_signals(&none, 0);
    failed = execute(file, arguments, environment);
  }
  *start_error = (int32_t)-failed;
  sys_exit(127);
}

static void start(uint32_t id, const char *file, char **arguments, char **environment) {
  struct child *child = children;
  while (child < children + CHILDREN && child->taken) child++;
  if (child == children + CHILDREN) return tell_number(id, TELL_FAILED, EAGAIN);
  int32_t output[2], errors[2];
  long failed = sys_pipe(output);
  if (failed < 0) return tell_number(id, TELL_FAILED, (uint32_t)-failed);
  failed = sys_pipe(errors);
  if (failed >= 0) {
    const int32_t ends[2] = {output[1], errors[1]};
    *start_error = 0;
    // Goes on when the other has become its program, or could not.
    failed = sys_fork_and_wait();
    if (failed == 0) become(ends, file, arguments, environment);
    if (failed > 0) *child = (struct child){id, (int32_t)failed, {output[0], errors[0]}, 1, *start_error != 0};
    sys_close(errors[1]);
    if (failed < 0) sys_close(errors[0]);
  }
  sys_close(output[1]);
  if (failed < 0) {
    sys_close(output[0]);
    return tell_number(id, TELL_FAILED, (uint32_t)-failed);
  }
  tell_number(id, *start_error ? TELL_FAILED : TELL_STARTED, (uint32_t)(*start_error ? *start_error : failed));
}

static void close_pipes(uint32_t id) {
  for (struct child *child = children; child < children + CHILDREN; child++) {
    if (!child->taken || child->id != id) continue;
    close_pipe(child, 0);
    close_pipe(child, 1);
  }
}

// `text`: the strings of a request, the last of which ends it.
static void obey(uint32_t id, uint32_t arguments, uint32_t variables, char *text, uint32_t size) {
  if (!arguments) return close_pipes(id);
  if (arguments > REQUEST_STRINGS || variables > REQUEST_STRINGS - arguments || !size || text[size - 1]) sys_exit(1);
  char *file = text, *end = text + size;
  char **to = strings;
  for (uint32_t left = arguments + variables; left; left--) {
    while (*text) text++;
    if (++text >= end) sys_exit(1);
    if (left == variables) *to++ = 0;
    *to++ = text;
  }
  if (!variables) *to++ = 0;
  *to = 0;
  start(id, file, strings, strings + arguments + 1);
}

static void read_requests(void) {
  long got = sys_read(IN, request + request_bytes, REQUEST_BYTES - request_bytes);
  if (got <= 0) sys_exit(0);
  request_bytes += (uint32_t)got;
  uint32_t at = 0;
  for (uint32_t header[4]; request_bytes - at >= sizeof header; at += header[0] + 4) {
    memcpy(header, request + at, sizeof header);
    if (header[0] < 12 || header[0] > REQUEST_BYTES - 4) sys_exit(1);
    if (request_bytes - at < header[0] + 4) break;
    obey(header[1], header[2], header[3], request + at + sizeof header, header[0] - 12);
  }
  request_bytes -= at;
  memcpy(request, request + at, request_bytes);
}

static void read_pipe(struct child *child, int which) {
  static char piece[ANSWER_BYTES / 2];
  long got = sys_read(child->pipes[which], piece, sizeof piece);
  if (got > 0) memcpy(tell(child->id, which ? TELL_ERRORS : TELL_OUTPUT, (uint32_t)got), piece, (uint64_t)got);
  else close_pipe(child, which);
}

// What it wrote before it ended is in its pipes; a pipe holds less than this reads of one that others write to without end.
static void read_rest(struct child *child, int which) {
  for (int left = PIPE_PIECES; left && child->pipes[which] >= 0; left--) {
    struct poll_entry entry = {child->pipes[which], FLAG_IN, 0};
    if (sys_look(&entry, 1) <= 0) return;
    read_pipe(child, which);
  }
}

static void reap(long signals) {
  char notice[128];
  sys_read(signals, notice, sizeof notice);
  int32_t status;
  for (long pid; (pid = sys_wait(&status)) > 0;)
    for (struct child *child = children; child < children + CHILDREN; child++) {
      if (child->pid != pid) continue;
      read_rest(child, 0);
      read_rest(child, 1);
      child->pid = 0;
      if (!child->silent) tell_number(child->id, TELL_ENDED, (uint32_t)status);
    }
}

static uint32_t gather(long signals) {
  polled[0] = (struct poll_entry){IN, FLAG_IN, 0};
  polled[1] = (struct poll_entry){(int32_t)signals, FLAG_IN, 0};
  uint32_t count = 2;
  for (struct child *child = children; child < children + CHILDREN; child++)
    for (int which = 0; which < 2; which++)
      if (child->taken && child->pipes[which] >= 0)
        polled[count++] = (struct poll_entry){child->pipes[which], FLAG_IN, 0};
  return count;
}

static int has_happened(int32_t fd, uint32_t count) {
  for (uint32_t i = 2; i < count; i++)
    if (polled[i].fd == fd) return polled[i].happened & (FLAG_IN | FLAG_GONE);
  return 0;
}

static _Noreturn void start_programs(void) {
  // Whoever ends all processes of a service does not mean to keep the program from clearing up.
  uint64_t all = ~(uint64_t)0, ended = (uint64_t)1 << (SIGCHLD - 1), before;
  long shared = sys_mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  long signals = sys_signals(&ended);
  if (sys_block_signals(&all, &before) < 0 || signals < 0 || (shared < 0 && shared > -4096)) sys_exit(1);
  start_error = (volatile int32_t *)shared;
  tell(0, TELL_STARTED, 0);
  for (;;) {
    flush();
    uint32_t count = gather(signals);
    if (sys_poll(polled, count) < 0) continue;
    for (struct child *child = children; child < children + CHILDREN; child++)
      for (int which = 0; which < 2; which++)
        if (child->taken && child->pipes[which] >= 0 && has_happened(child->pipes[which], count))
          read_pipe(child, which);
    if (polled[1].happened) reap(signals);
    if (polled[0].happened) read_requests();
    for (struct child *child = children; child < children + CHILDREN; child++) finish(child);
  }
}

#endif
