/** Runs one operation of a local-hostpath driver and kills itself with SIGKILL before step `killAt`. Started by local-hostpath-crash.test.ts. */
import fs from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { createRunner } from '../../src/backends/exec/runner.ts';
import { detachedContext } from '../../src/core/call.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { localHostpath } from '../../src/drivers/local-hostpath/type.ts';
import type { Operation } from './local-hostpath-operations.ts';
import { operations, optionsFor } from './local-hostpath-operations.ts';

const { base, operation, killAt, paths } = JSON.parse(process.argv[2] ?? '') as {
  base: string;
  operation: Operation;
  killAt: number;
  paths?: Record<string, string>;
};

let step = 0;
function next(): void {
  step++;
  if (step === killAt) process.kill(process.pid, 'SIGKILL');
}

type Method = (...args: unknown[]) => Promise<unknown>;

/** Makes each of these methods a step. */
function stepped<T extends object>(object: T, names: readonly (keyof T)[]): void {
  for (const name of names) {
    const original = (object[name] as Method).bind(object);
    Object.assign(object, {
      [name]: async (...args: unknown[]) => {
        next();
        return await original(...args);
      },
    });
  }
}

// Everything that changes a file system is a step. Looking changes nothing.
const { open } = fs;
fs.open = async (...args: Parameters<typeof open>) => {
  if (args[1] === 'wx') next();
  const handle = await open(...args);
  stepped(handle, ['writeFile', 'sync']);
  return handle;
};
stepped(fs, ['mkdir', 'chmod', 'chown', 'link', 'unlink', 'rename', 'rmdir']);
syncBuiltinESMExports();

const real = createRunner({ paths });
const driver = localHostpath.create(optionsFor(base, operation), {
  csiName: 'test',
  nodeName: 'node1',
  nodeId: 'node1',
  nodeTopology: {},
  maxIdBytes: 128,
  log: silentLogger,
  async run(call, command) {
    next();
    if (command.program === 'cp') {
      // Half a copy.
      const target = command.args.at(-1) ?? '';
      await fs.writeFile(join(target, 'half'), 'half');
      next();
      await fs.rm(join(target, 'half'));
    }
    const output = await real(call, command);
    next();
    return output;
  },
});
await operations[operation](driver, detachedContext(silentLogger));
