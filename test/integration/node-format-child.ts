/** Stages a blank device, so that a test can end this process in the middle of it. */
import { createRunner } from '../../src/backends/exec/runner.ts';
import { detachedContext } from '../../src/core/call.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { createNodePlane } from '../../src/node/plane.ts';
import { mountCapability } from './node-support.ts';

const { state, path, stagingPath, paths } = JSON.parse(process.argv[2] ?? '') as {
  state: string;
  path: string;
  stagingPath: string;
  /** Programs to use, by name. */
  paths: Readonly<Record<string, string>>;
};
const node = createNodePlane({ info: { nodeId: 'n1' }, run: createRunner({ paths }), stateDirectory: state });
const context = { node_attach_driver: 'bind', path };
const request = { volumeId: 'v1', stagingPath, capability: mountCapability, context, publishContext: {} };
await node.stage(detachedContext(silentLogger), request);
