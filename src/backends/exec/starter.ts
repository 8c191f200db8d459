/**
 * Starts programs by way of a small process that does nothing else (scripts/launcher/starter.h). A process that starts another one is copied
 * first; of this one that takes as much time as all the rest of a short command, during which nobody else is served.
 */
import { spawn } from 'node:child_process';
import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { constants } from 'node:os';
import { getSystemErrorName } from 'node:util';
import type { Child, ChildOptions, ChildOutput, StartChild } from './child.ts';
import { killGroup } from './kill-group.ts';
import { answerReader, forgetRequest, type StarterAnswer, startRequest } from './starter-messages.ts';

/** How the small process is started: the executable by this name. */
interface StarterProgram {
  readonly file: string;
  readonly argv0: string;
}

/** That of the running executable. */
export const ownStarter: StarterProgram = { file: '/proc/self/exe', argv0: 'switchboard-starter' };

/** Of the 128 places that it has. */
const mostChildren = 100;

/**
 * Makes a function that starts programs by way of a small process, which is started when the first program is and again when it has ended. Until it
 * says that it is ready nothing is started by it.
 */
export function createStarter(program: StarterProgram = ownStarter): StartChild {
  let ready: Starter | undefined;
  let tried = false;

  function prepare(): void {
    if (tried) return;
    tried = true;
    runStarter(program, {
      onReady: (starter) => {
        ready = starter;
        tried = false;
      },
      // One that never was ready would not be the next time.
      onEnd: () => {
        ready = undefined;
      },
    });
  }
  return (options) => {
    if (!ready) prepare();
    return ready?.start(options);
  };
}

interface Starter {
  start(options: ChildOptions): Child | undefined;
}

interface StarterEvents {
  onReady(starter: Starter): void;
  onEnd(): void;
}

function runStarter({ file, argv0 }: StarterProgram, { onReady, onEnd }: StarterEvents): void {
  const children = new Map<number, StartedChild>();
  let lastId = 0;
  const small = spawn(file, [], { argv0, cwd: '/', env: {}, detached: true, stdio: ['pipe', 'pipe', 'ignore'] });
  small.on('error', end);
  if (small.pid === undefined) return;
  const { stdin, stdout } = small;
  // Those that this process must not end before.
  const awaited = new Set<number>();
  const leave = (id: number) => {
    if (awaited.delete(id) && awaited.size === 0) (stdout as Socket).unref();
  };

  const starter: Starter = {
    start(options) {
      const id = lastId + 1;
      const request = children.size < mostChildren ? startRequest(id, options) : undefined;
      if (!request || stdin.destroyed) return undefined;
      lastId = id;
      const child = startedChild(options.file, {
        forget() {
          if (children.has(id)) stdin.write(forgetRequest(id));
        },
        unref: () => leave(id),
      });
      children.set(id, child);
      if (awaited.add(id).size === 1) (stdout as Socket).ref();
      stdin.write(request);
      return child;
    },
  };
  const read = answerReader((answer) => {
    if (answer.id === 0) return onReady(starter);
    const child = children.get(answer.id);
    // Before it is told: there is nothing to forget then.
    if (answer.kind === 'closed' || answer.kind === 'failed') {
      children.delete(answer.id);
      leave(answer.id);
    }
    child?.take(answer);
  });
  function end(): void {
    onEnd();
    const left = [...children.values()];
    children.clear();
    for (const child of left) child.lose();
  }
  stdout.on('data', read);
  stdout.on('error', () => {});
  stdin.on('error', () => {});
  // Not before all that it has told was read.
  small.once('close', end);
  small.unref();
  (stdin as Socket).unref();
  (stdout as Socket).unref();
}

interface StartedChild extends Child {
  take(answer: StarterAnswer): void;
  /** Whoever started it has ended, and nobody will know how it ends. */
  lose(): void;
}

interface ChildUses {
  /** Called once, when nobody wants its output any more. */
  forget(): void;
  unref(): void;
}

function startedChild(file: string, { forget, unref }: ChildUses): StartedChild {
  const events = new EventEmitter();
  let forgotten = false;
  const destroy = () => {
    if (!forgotten) forget();
    forgotten = true;
  };
  const output = (): ChildOutput & EventEmitter => Object.assign(new EventEmitter(), { destroy });
  const [stdout, stderr] = [output(), output()];
  const on: Child['on'] = (event, listener) => events.on(event, listener);
  const once = ((event: string, listener: () => void) => events.once(event, listener)) as Child['once'];
  const state: { pid?: number; exitCode: number | null; signalCode: NodeJS.Signals | null } = {
    exitCode: null,
    signalCode: null,
  };

  /** @param status as wait(2) tells it */
  function end(status: number): void {
    const signal = status & 0x7f;
    state.exitCode = signal === 0 ? (status >> 8) & 0xff : null;
    state.signalCode = signal === 0 ? null : signalName(signal);
    events.emit('exit', state.exitCode, state.signalCode);
  }
  return Object.assign(state, {
    stdout,
    stderr,
    on,
    once,
    unref,
    take(answer: StarterAnswer) {
      switch (answer.kind) {
        case 'started':
          state.pid = answer.pid;
          return events.emit('spawn');
        case 'failed':
          return events.emit('error', startError(file, answer.errno));
        case 'stdout':
          return stdout.emit('data', answer.bytes);
        case 'stderr':
          return stderr.emit('data', answer.bytes);
        case 'ended':
          return end(answer.status);
        case 'closed':
          return events.emit('close');
      }
    },
    lose() {
      if (state.pid === undefined) return void events.emit('error', startError(file, constants.errno.EAGAIN));
      if (state.exitCode === null && state.signalCode === null) {
        killGroup(state.pid, 'SIGKILL');
        end(constants.signals.SIGKILL);
      }
      events.emit('close');
    },
  });
}

/** As node:child_process tells it. */
function startError(file: string, errno: number): Error {
  const code = getSystemErrorName(-errno);
  return Object.assign(new Error(`spawn ${file} ${code}`), {
    code,
    errno: -errno,
    syscall: `spawn ${file}`,
    path: file,
  });
}

function signalName(signal: number): NodeJS.Signals {
  const named = Object.entries(constants.signals).find(([, number]) => number === signal);
  return (named?.[0] ?? 'SIGKILL') as NodeJS.Signals;
}
