import { CallError } from '../../../core/errors.ts';

/** Options of one connection by the kernel's names. A flag's value is `true`. */
export type ConnectOptions = ReadonlyMap<string, string | true>;

type Kind = 'number' | 'text' | 'flag' | 'secret';

/** What Linux takes for a connection (drivers/nvme/host/fabrics.c) besides where it leads to. nvme-connect(1) writes dashes for the underscores. */
const kinds: Readonly<Record<string, Kind>> = {
  queue_size: 'number',
  nr_io_queues: 'number',
  nr_write_queues: 'number',
  nr_poll_queues: 'number',
  reconnect_delay: 'number',
  ctrl_loss_tmo: 'number',
  fast_io_fail_tmo: 'number',
  keep_alive_tmo: 'number',
  tos: 'number',
  keyring: 'number',
  tls_key: 'number',
  host_traddr: 'text',
  host_iface: 'text',
  hostnqn: 'text',
  hostid: 'text',
  dhchap_secret: 'secret',
  dhchap_ctrl_secret: 'secret',
  hdr_digest: 'flag',
  data_digest: 'flag',
  disable_sqflow: 'flag',
  duplicate_connect: 'flag',
  tls: 'flag',
  concat: 'flag',
};

/** Reads the arguments of a transport's URI, `ctrl-loss-tmo=60&hdr-digest`. Throws INVALID_ARGUMENT, never with a secret in it. */
export function parseConnectOptions(query: string, title: string): ConnectOptions {
  const options = new Map<string, string | true>();
  for (const [key, value] of new URLSearchParams(query)) {
    const name = key.replaceAll('-', '_');
    const kind = Object.hasOwn(kinds, name) ? kinds[name] : undefined;
    if (kind === undefined) {
      const known = Object.keys(kinds).map(dashed).join(', ');
      throw new CallError('INVALID_ARGUMENT', `${title}: "${key.slice(0, 60)}" is none of ${known}`);
    }
    const read = parseValue(kind, value);
    if (read === undefined)
      throw new CallError('INVALID_ARGUMENT', `${title}: ${dashed(name)} has to be ${wants[kind]}`);
    if (read !== false) options.set(name, read);
  }
  return options;
}

/** A value that can stand among the kernel's comma-separated options without becoming several. */
export function isPlainValue(text: string): boolean {
  return /^[\x21-\x2b\x2d-\x7e]+$/.test(text);
}

const wants: Readonly<Record<Kind, string>> = {
  number: 'a whole number',
  text: 'text without commas and spaces',
  secret: 'text without commas and spaces',
  flag: 'without a value, or true or false',
};

/** False: a flag that is off. Undefined: no proper value. */
function parseValue(kind: Kind, value: string): string | boolean | undefined {
  if (kind === 'flag') {
    if (/^(|1|true|yes|on)$/i.test(value)) return true;
    return /^(0|false|no|off)$/i.test(value) ? false : undefined;
  }
  // With ctrl_loss_tmo, -1 means for ever.
  if (kind === 'number') return /^(-1|\d{1,9})$/.test(value) ? value : undefined;
  return isPlainValue(value) ? value : undefined;
}

function dashed(name: string): string {
  return name.replaceAll('_', '-');
}
