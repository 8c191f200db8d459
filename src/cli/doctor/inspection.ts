/** What the checks look with. Nothing here blocks: every question has a time limit, and storage that may hang is asked by a child. */
import type { Located } from '../../backends/exec/locate.ts';
import type { RunCommand } from '../../backends/exec/run.ts';
import type { CallContext } from '../../core/call.ts';
import type { Endpoint } from '../../frontends/listener/endpoints.ts';
import type { MountTable } from '../../node/mount-table.ts';
import type { Shell } from '../shell.ts';
import type { Configured } from './configured.ts';

export interface Inspection {
  readonly env: Shell['env'];
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly uid: number;
  /** Where the host's root directory would be mounted. */
  readonly hostRoot: string;
  readonly nodeName: string;
  readonly stateDirectory: string;
  readonly modes: { readonly controller: boolean; readonly node: boolean };
  readonly endpoints: readonly Endpoint[];
  readonly configured: Configured;
  readonly files: Files;
  readonly mounts: MountTable;
  /** Aborted when the time for all checks is over. */
  readonly call: CallContext;
  readonly run: RunCommand;
  readonly locate: (program: string) => Promise<Located>;
  /** Rejects with CallError when nobody answers. */
  readonly askPlugin: (endpoint: string) => Promise<PluginAnswer>;
  /** The body of a GET over a unix socket. */
  readonly httpGet: (socket: string, path: string) => Promise<string>;
}

export interface PluginAnswer {
  readonly name: string;
  readonly version: string;
  readonly ready: boolean;
  readonly milliseconds: number;
}

/** Files of this machine. A path that leads to storage that may hang is refused with UNAVAILABLE rather than looked at. */
export interface Files {
  /** Undefined: there is no such file. */
  read(path: string): Promise<string | undefined>;
  /** Undefined: there is no such directory. */
  list(path: string): Promise<readonly string[] | undefined>;
  /** What is at the path, symbolic links followed. */
  look(path: string): Promise<FileFacts | undefined>;
  /** Of the file system below a path that exists. On storage that may hang a child asks. */
  space(path: string): Promise<Space | undefined>;
}

export interface FileFacts {
  readonly kind: 'file' | 'directory' | 'socket' | 'other';
  /** Permission bits. */
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  /** Milliseconds since the epoch. */
  readonly modified: number;
  /** The path itself, free of symbolic links. */
  readonly path: string;
}

/** Bytes, and numbers of files; these are 0 where the file system has no such limit. */
export interface Space {
  readonly bytes: number;
  readonly freeBytes: number;
  readonly files: number;
  readonly freeFiles: number;
}

/** A file that belongs to the host, in this root or in the host's. */
export interface HostFile {
  readonly path: string;
  readonly text: string;
  readonly modified: number;
  /** It is of the image of a container, whose host has one too. */
  readonly hides: { readonly path: string; readonly text: string } | undefined;
}

/** As the server reads it: of this root if it is there, or else of the host's. Undefined when it is nowhere. */
export async function readHostFile(
  { files, hostRoot }: Pick<Inspection, 'files' | 'hostRoot'>,
  path: string,
): Promise<HostFile | undefined> {
  const there = hostRoot + path;
  const [own, host] = await Promise.all([files.read(path), files.read(there)]);
  const at = own === undefined ? there : path;
  const text = own ?? host;
  if (text === undefined) return undefined;
  const hides = own !== undefined && host !== undefined && own.trim() !== host.trim();
  const modified = (await files.look(at))?.modified ?? 0;
  return { path: at, text, modified, hides: hides ? { path: there, text: host } : undefined };
}
