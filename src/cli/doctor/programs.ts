/** The programs of the host: where each is found, how it would be started, and whether it starts. */
import type { FoundThere } from '../../backends/exec/locate.ts';
import { asCallError, CallError, oneLine } from '../../core/errors.ts';
import { forEach } from './bounded.ts';
import { about, type Finding } from './finding.ts';
import type { Inspection } from './inspection.ts';
import { connectionsText, type Needs, needsOf, whoNeeds } from './needs.ts';
import { type KnownProgram, knownPrograms } from './program-table.ts';

const finding = about('programs');

/** Milliseconds for a program to tell its version. */
const versionLimitMs = 1500;

const anyExitCode = Array.from({ length: 256 }, (_, code) => code);

type Looks = Pick<Inspection, 'call' | 'run' | 'locate' | 'configured' | 'modes' | 'mounts'>;

export async function checkPrograms(inspection: Looks): Promise<readonly Finding[]> {
  const needs = needsOf(inspection.configured.connections, inspection.modes, inspection.mounts);
  return forEach(knownPrograms, 6, (known) => checkProgram(inspection, known, needs));
}

async function checkProgram(inspection: Looks, known: KnownProgram, needs: Needs): Promise<Finding> {
  const { program, use } = known;
  const users = whoNeeds(needs, known.neededBy);
  const located = await inspection.locate(program);
  const missing = users.length > 0 ? 'error' : 'note';
  const needed = users.length > 0 ? `; ${connectionsText(users)} cannot do without it` : '';
  if (located.strategy === undefined) {
    const advice = `install it on the host (package ${known.package}), or say where it is by host.programs.${program}.path`;
    const where = users.length > 0 ? `: ${located.passed.join('; ')}` : '';
    return finding(missing, program, `not found; ${use}${needed}${where}`, users.length > 0 ? advice : undefined);
  }
  const { version, broken } = await versionOf(inspection, known);
  const place = `${located.file} ${strategyText(located)}`;
  if (broken !== undefined) {
    const advice = `run it by hand on the host; choose another way by host.programs.${program}.strategy`;
    return finding(
      users.length > 0 ? 'error' : 'warning',
      program,
      `${place} does not start: ${broken}${needed}`,
      advice,
    );
  }
  return finding('ok', program, `${version === undefined ? '' : `${version}, `}${place}; ${use}`);
}

function strategyText({ strategy, place }: FoundThere): string {
  if (strategy === 'direct') return '(direct)';
  if (strategy === 'loader') return '(by the host’s loader)';
  return strategy === 'nsenter' ? `(nsenter into process ${place?.pid})` : `(chroot ${place?.root})`;
}

interface Version {
  readonly version?: string | undefined;
  /** Why it cannot be run at all. */
  readonly broken?: string | undefined;
}

async function versionOf({ call, run }: Looks, { program, ask }: KnownProgram): Promise<Version> {
  if (ask === undefined) return {};
  try {
    const command = { program, args: ask, timeoutMs: versionLimitMs, accept: anyExitCode };
    const { code, stdout, stderr } = await run(call, command);
    const said = `${stdout}\n${stderr}`;
    if (/error while loading shared libraries|Error (loading shared library|relocating)/.test(said)) {
      return { broken: oneLine(stderr, 160) };
    }
    // What brings a program to its root says so by these codes: chroot(1), nsenter(1).
    if ((code === 126 || code === 127) && stderr !== '') return { broken: oneLine(stderr, 160) };
    return { version: findVersion(said) };
  } catch (error) {
    const { code, message } = asCallError(error);
    // That it takes its time says nothing against it: this machine may be busy.
    const late = call.signal.aborted || (error instanceof CallError && code === 'DEADLINE_EXCEEDED');
    return late ? { version: 'version not told in time' } : { broken: oneLine(message, 160) };
  }
}

/** The first text that looks like a version. */
export function findVersion(text: string): string | undefined {
  const version = /\bv?(\d+\.\d+(?:[.\-+~]?[0-9A-Za-z]+)*)/.exec(text)?.[1];
  return version !== undefined && /busybox/i.test(text) ? `BusyBox ${version}` : version;
}
