/** A machine as the checks of `doctor` see it, of which a test says what matters to it. */
import type { CommandOutput } from '../../src/backends/exec/run.ts';
import type { Configured, ConfiguredConnection } from '../../src/cli/doctor/configured.ts';
import type { Finding } from '../../src/cli/doctor/finding.ts';
import type { FileFacts, Files, Inspection, Space } from '../../src/cli/doctor/inspection.ts';
import { detachedContext } from '../../src/core/call.ts';
import type { Driver } from '../../src/core/driver.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { parseMountTable } from '../../src/node/mount-table.ts';

/** Text: a file. Otherwise what it is. */
export type FakeFile = string | (Partial<FileFacts> & { readonly text?: string; readonly names?: readonly string[] });

export interface Machine extends Partial<Omit<Inspection, 'files' | 'configured' | 'mounts'>> {
  readonly fileTree?: Readonly<Record<string, FakeFile>>;
  readonly mountInfo?: string;
  readonly space?: Space;
  readonly connections?: readonly ConfiguredConnection[];
  readonly configured?: Partial<Configured>;
}

export const rootMount = '1 0 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n';

export function machine(facts: Machine = {}): Inspection {
  const { fileTree = {}, mountInfo = rootMount, space, connections = [], configured, ...rest } = facts;
  return {
    env: {},
    now: () => Date.parse('2025-11-21T12:00:00Z'),
    uid: 0,
    hostRoot: '/host',
    nodeName: 'node-1',
    stateDirectory: '/var/lib/switchboard',
    modes: { controller: true, node: true },
    endpoints: [],
    files: files(fileTree, space),
    mounts: parseMountTable(mountInfo),
    configured: { path: undefined, main: undefined, files: [], secrets: [], connections, ...configured },
    call: detachedContext(silentLogger),
    run: async () => answer(''),
    locate: async (program) => ({
      program,
      strategy: 'direct',
      file: `/usr/bin/${program}`,
      start: { argv: [program] },
      passed: [],
    }),
    askPlugin: () => Promise.reject(new Error('nobody')),
    httpGet: () => Promise.reject(new Error('nobody')),
    ...rest,
  };
}

export function answer(stdout: string, more: Partial<CommandOutput> = {}): CommandOutput {
  return { code: 0, stdout, stderr: '', ...more };
}

function files(tree: Readonly<Record<string, FakeFile>>, space: Space | undefined): Files {
  const at = (path: string) => (Object.hasOwn(tree, path) ? tree[path] : undefined);
  return {
    read: async (path) => {
      const file = at(path);
      return typeof file === 'string' ? file : file?.text;
    },
    list: async (path) => {
      const file = at(path);
      return typeof file === 'object' ? file.names : undefined;
    },
    look: async (path) => {
      const file = at(path);
      if (file === undefined) return undefined;
      const usual: FileFacts = { kind: 'file', mode: 0o644, uid: 0, gid: 0, modified: 1e12, path };
      return typeof file === 'string' ? usual : { ...usual, ...file };
    },
    space: async () => space,
  };
}

export function connection(
  name: string,
  driver: string,
  more: Partial<ConfiguredConnection> = {},
): ConfiguredConnection {
  return { name, driver, basePath: undefined, quota: false, repositories: [], open: async () => aDriver(), ...more };
}

export function aDriver(more: Partial<Driver> = {}): Driver {
  return { name: 'fake', constrained: false, close: async () => {}, ...more };
}

/** `state name` of each. */
export function briefly(findings: readonly Finding[]): readonly string[] {
  return findings.map(({ state, name }) => `${state} ${name}`);
}

export function only(findings: readonly Finding[], name: string): Finding {
  const found = findings.filter((one) => one.name === name);
  if (found.length !== 1 || !found[0]) throw new Error(`${found.length} findings named ${name}`);
  return found[0];
}
