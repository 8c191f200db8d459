/** A processor that an executable can be made for. */
export type Architecture = 'x64' | 'arm64';

/** What differs between the processors. */
export interface Target {
  readonly arch: Architecture;
  /** Debian's name for it. */
  readonly debian: string;
  /** The prefix of the tools that make programs for it on another machine. */
  readonly triplet: string;
  /** The Debian package that brings those tools. */
  readonly crossCompiler: string;
  /** Runs its programs on another machine; from the package qemu-user-static. */
  readonly emulator: string;
  /** The SONAME of the dynamic loader. */
  readonly loader: string;
  /** Flags that only its compiler knows. */
  readonly compilerFlags: readonly string[];
}

export const targets: Record<Architecture, Target> = {
  x64: {
    arch: 'x64',
    debian: 'amd64',
    triplet: 'x86_64-linux-gnu',
    crossCompiler: 'gcc-x86-64-linux-gnu',
    emulator: 'qemu-x86_64-static',
    loader: 'ld-linux-x86-64.so.2',
    compilerFlags: ['-fcf-protection=none'],
  },
  arm64: {
    arch: 'arm64',
    debian: 'arm64',
    triplet: 'aarch64-linux-gnu',
    crossCompiler: 'gcc-aarch64-linux-gnu',
    emulator: 'qemu-aarch64-static',
    loader: 'ld-linux-aarch64.so.1',
    compilerFlags: ['-mno-outline-atomics'],
  },
};

/** Whether this machine runs the target's programs itself. */
export const isNative = (target: Target): boolean => process.platform === 'linux' && process.arch === target.arch;
