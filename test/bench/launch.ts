/** Starting a plugin, and how long that takes. */
import { connect as connectSocket } from 'node:net';
import { join } from 'node:path';
import { services } from '../../src/generated/services.js';
import { type BackgroundProgram, startProgram } from '../conformance/background-program.ts';
import { connect } from './client.ts';
import { exactCpuMs } from './process-tree.ts';
import type { Plugin, Subject } from './subject.ts';

export interface Launched {
  readonly plugin: Plugin & { readonly pid: number };
  readonly program: BackgroundProgram;
  readonly folder: string;
  /** From the moment it was executed until its first Probe was answered. */
  readonly wallMs: number;
  /** What it used of the processors until then. */
  readonly cpuMs: number;
}

const patienceMs = 60_000;

/** Starts a plugin in an empty folder and waits until it says that it is ready. */
export async function launch(subject: Subject, folder: string): Promise<Launched> {
  if (!subject.prepare) throw new Error(`${subject.name} cannot be started`);
  const { command, endpoint } = await subject.prepare(folder);
  const began = performance.now();
  // Those that run side by side have one each.
  const env = { SWITCHBOARD_STATE_DIR: join(folder, 'state') };
  const program = await startProgram(command, { logFile: join(folder, 'log'), env });
  try {
    await listening(endpoint, program, began + patienceMs);
    const client = connect(endpoint);
    await ready(() => client.call(services.Identity.Probe, {}), began + patienceMs);
    const wallMs = performance.now() - began;
    const cpuMs = await exactCpuMs(program.pid);
    client.close();
    return { plugin: { endpoint, pid: program.pid }, program, folder, wallMs, cpuMs };
  } catch (error) {
    await program.stop(2000);
    throw error;
  }
}

/** A gRPC client waits longer and longer between two attempts to connect, so it is not asked before somebody listens. */
async function listening(endpoint: string, program: BackgroundProgram, giveUp: number): Promise<void> {
  let hasEnded = false;
  program.ended.then(() => {
    hasEnded = true;
  });
  while (!(await canConnect(endpoint))) {
    if (hasEnded) throw new Error(`the plugin ended:\n${await program.logTail()}`);
    if (performance.now() > giveUp) throw new Error(`nobody listens on ${endpoint}:\n${await program.logTail()}`);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

function canConnect(endpoint: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connectSocket(endpoint.replace(/^unix:(\/\/)?/, ''));
    const done = (answer: boolean) => {
      socket.destroy();
      resolve(answer);
    };
    socket.once('connect', () => done(true));
    socket.once('error', () => done(false));
  });
}

async function ready(probe: () => Promise<{ ready?: { value: boolean } | undefined }>, giveUp: number): Promise<void> {
  for (;;) {
    const answer = await probe();
    // The specification: a plugin that leaves the field out is ready.
    if (answer.ready?.value !== false) return;
    if (performance.now() > giveUp) throw new Error('the plugin does not become ready');
  }
}
