/** The keys that the configuration blocks of all directory drivers have (`local-hostpath`, `nfs`, `smb`, `lustre`). */
import * as v from 'valibot';
import { account } from '../../config/account.ts';
import { octalMode } from '../../config/octal-mode.ts';
import { secret } from '../../config/secret.ts';

/** How snapshots are kept: as folders beside the volumes, or in a restic or kopia repository. */
export const snapshotDrivers = ['filecopy', 'restic', 'kopia'] as const;
export type SnapshotDriver = (typeof snapshotDrivers)[number];

const expectedPath = 'an absolute path';

/** An absolute path without a slash at its end. */
const absolutePath = v.pipe(
  v.string(expectedPath),
  v.regex(/^\/(?!.*\0)/s, expectedPath),
  v.transform((path) => (path === '/' ? path : path.replace(/\/+$/, '') || '/')),
);

/** The path of an SMB share: its name, and folders in it. */
export const pathOfShare = v.pipe(
  v.string('the name of a share'),
  v.regex(/^\/*[^/\0]/, 'the name of a share'),
  v.transform((path) => path.replace(/\/+$/, '')),
);

const texts = v.array(v.string());

/** Variables of a program's environment: where its repository is, and the secrets to get there. */
const environment = v.optional(
  v.record(v.string(), secret(v.pipe(v.union([v.string(), v.number(), v.boolean()]), v.transform(String)))),
);

const restic = v.object({
  global_flags: v.optional(texts),
  tags: v.optional(texts),
  prune: v.optional(
    v.pipe(
      v.union([v.boolean(), v.string(), v.number()]),
      v.transform((value) => /^(true|yes|1)$/i.test(String(value))),
    ),
  ),
  env: environment,
});

const kopia = v.object({
  config_token: v.optional(secret(v.string())),
  global_flags: v.optional(texts),
  tags: v.optional(texts),
  env: environment,
});

const snapshots = v.object({
  default_driver: v.optional(v.picklist(snapshotDrivers)),
  /** How many whole volumes are copied at once, for snapshots, clones and restores; the others wait. */
  parallel_copies: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1)), 4),
  /** Seconds that a snapshot may take before the answer is that it is not ready yet. */
  answer_within: v.optional(v.pipe(v.number(), v.minValue(0), v.maxValue(3600)), 5),
  restic: v.optional(restic),
  kopia: v.optional(kopia),
});

/** Spread these into the entries of a directory driver's block. */
export const directoryEntries = {
  shareBasePath: absolutePath,
  controllerBasePath: absolutePath,
  dirPermissionsMode: v.optional(octalMode()),
  dirPermissionsUser: v.optional(account),
  dirPermissionsGroup: v.optional(account),
  snapshots: v.optional(snapshots, {}),
} as const;

const schema = v.object(directoryEntries);

/** The keys of {@link directoryEntries} after validation. */
export type DirectoryOptions = v.InferOutput<typeof schema>;
