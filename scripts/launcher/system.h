// What differs between the processors: system calls, entering and leaving the launcher. And the few numbers of the
// kernel's interface that are needed, so that no C library's headers have to be installed.
#ifndef SYSTEM_H
#define SYSTEM_H

#include <stdint.h>

// Shares memory, files, signal handlers and process with its starter.
#define THREAD_FLAGS (0x100 | 0x200 | 0x400 | 0x800 | 0x10000 | 0x40000) // CLONE_{VM,FS,FILES,SIGHAND,THREAD,SYSVSEM}

#if defined(__x86_64__)

enum { SYS_read = 0, SYS_write = 1, SYS_close = 3, SYS_mmap = 9, SYS_munmap = 11, SYS_rt_sigprocmask = 14,
       SYS_pread64 = 17, SYS_madvise = 28, SYS_nanosleep = 35, SYS_clone = 56, SYS_execve = 59, SYS_exit = 60,
       SYS_wait4 = 61, SYS_setsid = 112, SYS_exit_group = 231, SYS_openat = 257, SYS_ppoll = 271, SYS_signalfd4 = 289,
       SYS_dup3 = 292, SYS_pipe2 = 293, SYS_memfd_create = 319 };
#define ELF_MACHINE 62

static inline long system_call(long number, long a, long b, long c, long d, long e, long f) {
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

// The kernel's entry point, and the one that the dynamic loader is told is the program's. At the latter rdx holds a
// function that the program must register to be run at exit.
__asm__(".pushsection .text\n"
        ".globl _start\n.hidden _start\n.type _start, @function\n_start:\n"
        "  xor %ebp, %ebp\n  mov %rsp, %rdi\n  and $-16, %rsp\n  call launch\n  hlt\n"
        ".globl program_entry\n.hidden program_entry\n.type program_entry, @function\nprogram_entry:\n"
        "  push %rdx\n  sub $8, %rsp\n  call settle\n  add $8, %rsp\n  pop %rdx\n  xor %ebp, %ebp\n  jmp *%rax\n"
        ".popsection\n");

static inline _Noreturn void enter(uintptr_t entry, void *stack) {
  __asm__ volatile("mov %0, %%rsp\n  xor %%edx, %%edx\n  xor %%ebp, %%ebp\n  jmp *%1"
                   : : "S"(stack), "D"(entry) : "memory");
  __builtin_unreachable();
}

// A thread by the kernel's means alone. The function must not return.
static inline void sys_start_thread(void (*function)(void), void *stack_end) {
  long result;
  register long r10 __asm__("r10") = 0;
  register long r8 __asm__("r8") = 0;
  __asm__ volatile("syscall\n  test %%rax, %%rax\n  jnz 1f\n  xor %%ebp, %%ebp\n  call *%[function]\n  hlt\n1:"
                   : "=a"(result)
                   : "a"(SYS_clone), "D"(THREAD_FLAGS), "S"(stack_end), "d"(0), "r"(r10), "r"(r8),
                     [function] "r"(function)
                   : "rcx", "r11", "memory", "cc");
}

#elif defined(__aarch64__)

enum { SYS_dup3 = 24, SYS_openat = 56, SYS_close = 57, SYS_pipe2 = 59, SYS_read = 63, SYS_write = 64, SYS_pread64 = 67,
       SYS_ppoll = 73, SYS_signalfd4 = 74, SYS_exit = 93, SYS_exit_group = 94, SYS_nanosleep = 101,
       SYS_rt_sigprocmask = 135, SYS_setsid = 157, SYS_munmap = 215, SYS_clone = 220, SYS_execve = 221, SYS_mmap = 222,
       SYS_madvise = 233, SYS_wait4 = 260, SYS_memfd_create = 279 };
#define ELF_MACHINE 183

static inline long system_call(long number, long a, long b, long c, long d, long e, long f) {
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
}

// As above; here x0 holds the function to be registered.
__asm__(".pushsection .text\n"
        ".globl _start\n.hidden _start\n.type _start, %function\n_start:\n"
        "  mov x29, #0\n  mov x30, #0\n  mov x0, sp\n  bl launch\n  brk #1\n"
        ".globl program_entry\n.hidden program_entry\n.type program_entry, %function\nprogram_entry:\n"
        "  str x0, [sp, #-16]!\n  bl settle\n  mov x16, x0\n  ldr x0, [sp], #16\n"
        "  mov x29, #0\n  mov x30, #0\n  br x16\n"
        ".popsection\n");

static inline _Noreturn void enter(uintptr_t entry, void *stack) {
  register void *x16 __asm__("x16") = stack;
  register uintptr_t x17 __asm__("x17") = entry;
  __asm__ volatile("mov sp, x16\n  mov x0, #0\n  mov x29, #0\n  mov x30, #0\n  br x17"
                   : : "r"(x16), "r"(x17) : "memory");
  __builtin_unreachable();
}

// As above.
static inline void sys_start_thread(void (*function)(void), void *stack_end) {
  register long x8 __asm__("x8") = SYS_clone;
  register long x0 __asm__("x0") = THREAD_FLAGS;
  register void *x1 __asm__("x1") = stack_end;
  register long x2 __asm__("x2") = 0;
  register long x3 __asm__("x3") = 0;
  register long x4 __asm__("x4") = 0;
  __asm__ volatile("svc 0\n  cbnz x0, 1f\n  mov x29, #0\n  blr %[function]\n  brk #1\n1:"
                   : "+r"(x0)
                   : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), [function] "r"(function)
                   : "memory", "cc");
}

#else
#error "no system calls for this processor"
#endif

extern char program_entry[] __attribute__((visibility("hidden")));

#define ENOENT 2
#define EAGAIN 11
#define EACCES 13
#define ENOTDIR 20
#define EINVAL 22
#define SIGCHLD 17
#define WNOHANG 1
#define CLONE_VFORK 0x4000
#define AT_FDCWD (-100)
#define O_RDONLY 0
#define O_CLOEXEC 02000000
#define MFD_CLOEXEC 1
#define MFD_NOEXEC_SEAL 8
#define PROT_NONE 0
#define PROT_READ 1
#define PROT_WRITE 2
#define PROT_EXEC 4
#define MADV_DONTNEED 4
#define SIG_SETMASK 2
#define MAP_SHARED 0x01
#define MAP_PRIVATE 0x02
#define MAP_FIXED 0x10
#define MAP_ANONYMOUS 0x20
#define MAP_NORESERVE 0x4000
#define MAP_FIXED_NOREPLACE 0x100000

static inline long sys_open(const char *path) {
  return system_call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
}
static inline long sys_close(long fd) { return system_call(SYS_close, fd, 0, 0, 0, 0, 0); }
static inline long sys_write(long fd, const void *data, uint64_t size) {
  return system_call(SYS_write, fd, (long)data, (long)size, 0, 0, 0);
}
static inline long sys_read(long fd, void *data, uint64_t size) {
  return system_call(SYS_read, fd, (long)data, (long)size, 0, 0, 0);
}
static inline long sys_pread(long fd, void *data, uint64_t size, uint64_t offset) {
  return system_call(SYS_pread64, fd, (long)data, (long)size, (long)offset, 0, 0);
}
static inline long sys_mmap(uintptr_t address, uint64_t size, int protection, int flags, long fd, uint64_t offset) {
  return system_call(SYS_mmap, (long)address, (long)size, protection, flags, fd, (long)offset);
}
static inline long sys_munmap(uintptr_t address, uint64_t size) {
  return system_call(SYS_munmap, (long)address, (long)size, 0, 0, 0, 0);
}
static inline long sys_memfd_create(const char *name, unsigned flags) {
  return system_call(SYS_memfd_create, (long)name, flags, 0, 0, 0, 0);
}
static inline long sys_madvise(uintptr_t address, uint64_t size, int advice) {
  return system_call(SYS_madvise, (long)address, (long)size, advice, 0, 0, 0);
}
static inline long sys_block_signals(const uint64_t *signals, uint64_t *before) {
  return system_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)signals, (long)before, sizeof *signals, 0, 0);
}
// A descriptor that can be read when one of these signals, which must be blocked, has come.
static inline long sys_signals(const uint64_t *signals) {
  return system_call(SYS_signalfd4, -1, (long)signals, sizeof *signals, O_CLOEXEC, 0, 0);
}
static inline long sys_poll(void *entries, uint64_t count) {
  return system_call(SYS_ppoll, (long)entries, (long)count, 0, 0, sizeof(uint64_t), 0);
}
// As above, without waiting.
static inline long sys_look(void *entries, uint64_t count) {
  int64_t now[2] = {0, 0};
  return system_call(SYS_ppoll, (long)entries, (long)count, (long)now, 0, sizeof(uint64_t), 0);
}
static inline long sys_pipe(int32_t *ends) { return system_call(SYS_pipe2, (long)ends, O_CLOEXEC, 0, 0, 0, 0); }
// The copy stays open in what is executed.
static inline long sys_dup(long fd, long copy) { return system_call(SYS_dup3, fd, copy, 0, 0, 0, 0); }
static inline long sys_setsid(void) { return system_call(SYS_setsid, 0, 0, 0, 0, 0, 0); }
// A copy of the process, in which it gives 0. It returns in this one when the other has executed a program or ended.
static inline long sys_fork_and_wait(void) { return system_call(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0, 0); }
static inline long sys_execve(const char *file, char **arguments, char **environment) {
  return system_call(SYS_execve, (long)file, (long)arguments, (long)environment, 0, 0, 0);
}
// A child that has ended, if there is one.
static inline long sys_wait(int32_t *status) { return system_call(SYS_wait4, -1, (long)status, WNOHANG, 0, 0, 0); }
static inline void sys_sleep(int64_t seconds) {
  int64_t time[2] = {seconds, 0};
  system_call(SYS_nanosleep, (long)time, 0, 0, 0, 0, 0);
}
static inline _Noreturn void sys_exit_thread(void) {
  for (;;) system_call(SYS_exit, 0, 0, 0, 0, 0, 0);
}
static inline _Noreturn void sys_exit(int code) {
  for (;;) system_call(SYS_exit_group, code, 0, 0, 0, 0, 0);
}

#endif
