import { CallError } from '../../core/errors.ts';
import { checkedPath, inspectPath } from '../paths.ts';
import type { MakeAttacher } from './attacher.ts';

/** A path of this node, from the context's `path`: a directory, or a block device. There is nothing to attach or detach. */
export const hostpath: MakeAttacher = (tools) => ({
  async attach(call, { context, table }) {
    if (!context.path) throw new CallError('INVALID_ARGUMENT', 'the volume context has no `path`');
    const path = checkedPath(context.path, 'the volume context’s path');
    const found = await inspectPath(call, tools, table, path);
    switch (found.is) {
      case 'directory':
        return { type: 'directory', path };
      case 'device':
        return { type: 'device', path };
      case 'missing':
        throw new CallError('NOT_FOUND', `${path} does not exist on this node`);
      case 'dead':
        throw new CallError('UNAVAILABLE', `${path} cannot be reached: ${found.why}`);
      default:
        throw new CallError('FAILED_PRECONDITION', `${path} is neither a directory nor a block device`);
    }
  },
});
