/** The `host` key of a main configuration file: how programs of the host are reached. It is for the whole process, so connections have none. */
import * as v from 'valibot';

const strategy = v.picklist(['auto', 'direct', 'chroot', 'nsenter', 'loader']);
const absolutePath = v.pipe(v.string(), v.startsWith('/', 'an absolute path'));
const processOf = v.union([v.pipe(v.number(), v.integer(), v.minValue(1)), v.pipe(v.string(), v.nonEmpty())]);

const program = v.object({
  /** In the root that the program runs in. */
  path: v.optional(absolutePath),
  strategy: v.optional(strategy),
  pid: v.optional(processOf),
  prefix: v.optional(v.array(v.string())),
});

export const hostSchema = v.object({
  strategy: v.optional(strategy),
  /** Where the host's root directory is mounted. */
  root: v.optional(absolutePath),
  /** The process whose namespaces `nsenter` enters, by its id or its name. */
  pid: v.optional(processOf),
  searchPath: v.optional(v.array(absolutePath)),
  programs: v.optional(v.record(v.string(), program)),
});

/** The `host` key after validation. */
export type HostOptions = v.InferOutput<typeof hostSchema>;
