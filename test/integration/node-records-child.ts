/** Makes one call for a volume and kills itself with SIGKILL before step `killAt`. Started by tests of what is remembered. */
import fs from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { createRunner } from '../../src/backends/exec/runner.ts';
import { detachedContext } from '../../src/core/call.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { loopAttacher } from './loop-attacher.ts';
import { blockCapability, mountCapability } from './node-support.ts';

const {
  state,
  file,
  stagingPath,
  targetPath = '',
  operation,
  killAt,
} = JSON.parse(process.argv[2] ?? '') as {
  state: string;
  file: string;
  stagingPath: string;
  /** Where it is published as a block device, for reading. */
  targetPath?: string;
  operation: 'stage' | 'unstage' | 'publish' | 'unpublish';
  killAt: number;
};

let step = 0;
function next(): void {
  step++;
  if (step === killAt) process.kill(process.pid, 'SIGKILL');
}

type Method = (...args: unknown[]) => Promise<unknown>;

// Everything that changes a file system is a step, and so is every program, before and after. Looking changes nothing.
for (const name of ['mkdir', 'writeFile', 'rename', 'link', 'unlink', 'rmdir'] as const) {
  const original = fs[name] as Method;
  Object.assign(fs, {
    [name]: async (...args: unknown[]) => {
      next();
      return await original(...args);
    },
  });
}
syncBuiltinESMExports();
const { createNodePlane } = await import('../../src/node/plane.ts');

const real = createRunner();
const node = createNodePlane({
  info: { nodeId: 'n1' },
  stateDirectory: state,
  attachers: { loop: loopAttacher },
  async run(call, command) {
    next();
    const output = await real(call, command);
    next();
    return output;
  },
});
const call = detachedContext(silentLogger);
const request = { volumeId: 'v1', stagingPath, targetPath };
const more = { context: { node_attach_driver: 'loop', file }, publishContext: {} };
switch (operation) {
  case 'stage':
    await node.stage(call, { ...request, ...more, capability: mountCapability });
    break;
  case 'unstage':
    await node.unstage(call, request);
    break;
  case 'publish':
    await node.publish(call, { ...request, ...more, capability: blockCapability, readonly: true });
    break;
  case 'unpublish':
    await node.unpublish(call, request);
}
process.exit(0);
