/** What `docker volume create -o key=value …` may say. Keys that are not named here are parameters of the storage class. */
import { CallError } from '../../core/errors.ts';
import { parseSize } from '../../core/sizes.ts';
import { type AccessMode, accessModes, type MountCapability, type Parameters } from '../../core/volume.ts';
import { splitFlags } from '../../node/mount-options.ts';

export type Options = Readonly<Record<string, string>>;

/** Options with a meaning of their own, as they are spelled; other letters of the same word are taken for them. */
const own = ['connection', 'size', 'fsType', 'mountFlags', 'access', 'from'] as const;

/** `-o secret.<key>=@<file>` */
const secretPrefix = 'secret.';

/**
 * A parameter that tells volumes made through this door from all others on the same storage. Back ends that remember parameters can tell then;
 * without it, a volume that Swarm or Nomad uses could be listed, and removed, as one of Docker's.
 */
const mark = { key: 'switchboard/door', value: 'docker' } as const;

export function isMarked(parameters: Parameters | undefined): boolean {
  return parameters?.[mark.key] === mark.value;
}

export interface Source {
  readonly type: 'snapshot' | 'volume';
  /** An id, or the name of a volume. */
  readonly name: string;
}

/** What only matters when the volume is made. */
export interface CreateWishes {
  readonly sizeBytes: number | undefined;
  readonly source: Source | undefined;
  /** For the driver; {@link mountWishes} can be read from them again. */
  readonly parameters: Parameters;
}

/** What matters whenever it is mounted. */
export interface MountWishes {
  readonly capability: MountCapability;
  /** Secret key → the file's name within the folder of secrets. */
  readonly secretFiles: Readonly<Record<string, string>>;
}

/** Keys in their right spelling. Throws INVALID_ARGUMENT for one that is given twice, or that looks like a secret in the open. */
export function normalised(options: Options): Options {
  const result: Record<string, string> = {};
  for (const [key, value] of Object.entries(options)) {
    const name = own.find((one) => one.toLowerCase() === key.toLowerCase()) ?? key;
    if (Object.hasOwn(result, name)) throw invalid(`option ${name} is given twice`);
    if (/pass(word|wd|phrase)/i.test(name) && !name.startsWith(secretPrefix)) {
      throw invalid(`option ${name}: Docker shows options to everybody; use -o secret.${name}=@FILE`);
    }
    result[name] = value;
  }
  return result;
}

/** `options` must be normalised. Throws INVALID_ARGUMENT, naming the option. */
export function createWishes(options: Options): CreateWishes {
  const { size, from, ...parameters } = options;
  mountWishes(parameters);
  return {
    sizeBytes: size === undefined ? undefined : named('size', () => parseSize(size)) || undefined,
    source: from === undefined ? undefined : sourceOf(from),
    parameters: { ...parameters, [mark.key]: mark.value },
  };
}

export function mountWishes(parameters: Parameters): MountWishes {
  const { fsType = '', mountFlags = '', access = '' } = parameters;
  return {
    capability: {
      type: 'mount',
      mode: access === '' ? 'SINGLE_NODE_WRITER' : accessMode(access),
      fsType,
      mountFlags: [...named('mountFlags', () => splitFlags([mountFlags]))],
      mountGroup: '',
    },
    secretFiles: Object.fromEntries(
      Object.entries(parameters)
        .filter(([key]) => key.startsWith(secretPrefix))
        .map(([key, value]) => [key.slice(secretPrefix.length), secretFile(key, value)]),
    ),
  };
}

const shortModes: Readonly<Record<string, AccessMode>> = {
  rwo: 'SINGLE_NODE_WRITER',
  rwop: 'SINGLE_NODE_SINGLE_WRITER',
  rox: 'MULTI_NODE_READER_ONLY',
  rwx: 'MULTI_NODE_MULTI_WRITER',
};

function accessMode(text: string): AccessMode {
  const wanted = text.toUpperCase().replaceAll('-', '_');
  const mode = shortModes[text.toLowerCase()] ?? accessModes.find((one) => one === wanted && one !== 'UNKNOWN');
  if (mode) return mode;
  const known = [...Object.keys(shortModes), ...accessModes.filter((one) => one !== 'UNKNOWN')];
  throw invalid(`option access: ${JSON.stringify(text)} is not one of ${known.join(', ')}`);
}

function sourceOf(text: string): Source {
  const [, type, name] = /^(snapshot|volume):(.+)$/s.exec(text) ?? [];
  if (name !== undefined) return { type: type === 'volume' ? 'volume' : 'snapshot', name };
  throw invalid(`option from: write snapshot:ID or volume:NAME, not ${JSON.stringify(text)}`);
}

function secretFile(key: string, value: string): string {
  const [, file] = /^@(.+)$/s.exec(value) ?? [];
  if (key.length === secretPrefix.length) throw invalid('option secret.: the key is missing');
  if (file !== undefined) return file;
  throw invalid(`option ${key}: Docker shows options to everybody, so a secret is a file: write @FILE`);
}

function named<T>(option: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof CallError) throw new CallError(error.code, `option ${option}: ${error.message}`);
    throw error;
  }
}

function invalid(message: string): CallError {
  return new CallError('INVALID_ARGUMENT', message);
}
