/** LUNs of a real iSCSI target, as a node has them. */
import { after, before, describe, test } from 'node:test';
import { boot, type Guest } from './guest.ts';
import { noGuests } from './lab-files.ts';
import { lifecycle } from './lifecycle.ts';
import { createBackingFile, createPool, createZvol, growBacking, removeBacking } from './services/backing.ts';
import { createIscsiTarget, removeIscsiTarget, startInitiator } from './services/iscsi-target.ts';
import { type Switchboard, startSwitchboard } from './switchboard.ts';

const mib = 2 ** 20;
const chap = { user: 'node', password: 'what-nodes-know' };
const mutualChap = { user: 'target', password: 'what-targets-know' };
const oneWay = {
  'node-db.node.session.auth.authmethod': 'CHAP',
  'node-db.node.session.auth.username': chap.user,
  'node-db.node.session.auth.password': chap.password,
};
const bothWays = {
  ...oneWay,
  'node-db.node.session.auth.username_in': mutualChap.user,
  'node-db.node.session.auth.password_in': mutualChap.password,
};

const authentications = {
  open: {},
  CHAP: { chap, secrets: oneWay },
  'mutual CHAP': { chap, mutualChap, secrets: bothWays },
};

/** Where the target listens, and where the node is told that it does. Nothing answers at .200, and port 9 refuses. */
const ways = {
  'one portal': { listens: ['10.0.2.15:3260'], told: { portal: '10.0.2.15:3260' } },
  'a portal without a port': { listens: ['10.0.2.15:3260'], told: { portal: '10.0.2.15' } },
  IPv6: { listens: ['[fd00::15]:3260'], told: { portal: '[fd00::15]:3260' } },
  'one of two portals refusing': {
    listens: ['10.0.2.15:3260'],
    told: { portal: '10.0.2.15:9', portals: '10.0.2.15:3260' },
  },
  'one of two portals silent': {
    listens: ['10.0.2.15:3260'],
    told: { portals: '10.0.2.15:3260,10.0.2.200:3260' },
  },
};

interface Row {
  readonly authentication?: keyof typeof authentications;
  readonly way?: keyof typeof ways;
  readonly on?: 'zvol' | 'file';
  readonly access: 'ext4' | 'xfs' | 'btrfs' | 'block';
  readonly lun?: number;
}

const rows: readonly Row[] = [
  { access: 'ext4' },
  { access: 'xfs', on: 'file' },
  { access: 'btrfs', lun: 300 },
  { access: 'block', on: 'file' },
  { access: 'ext4', on: 'file', authentication: 'CHAP' },
  { access: 'xfs', authentication: 'CHAP', way: 'a portal without a port' },
  { access: 'block', authentication: 'CHAP' },
  { access: 'btrfs', on: 'file', authentication: 'mutual CHAP' },
  { access: 'ext4', authentication: 'mutual CHAP' },
  { access: 'block', on: 'file', authentication: 'mutual CHAP', way: 'IPv6', lun: 7 },
  { access: 'ext4', way: 'one of two portals refusing' },
  { access: 'btrfs', on: 'file', way: 'one of two portals silent', authentication: 'CHAP' },
  { access: 'xfs', way: 'IPv6' },
  { access: 'block', way: 'one of two portals refusing', lun: 1 },
];

describe('iSCSI', { skip: noGuests, timeout: 400_000 }, () => {
  let guest: Guest;
  let server: Switchboard;
  before(async () => {
    guest = await boot('iscsi');
    await createPool(guest);
    await startInitiator(guest);
    server = await startSwitchboard(guest);
  });
  after(() => guest?.down());

  for (const [index, row] of rows.entries()) {
    const { authentication = 'open', way = 'one portal', on = 'zvol', access, lun = 0 } = row;
    test(`${access} on a ${on}, ${authentication}, ${way}, LUN ${lun}`, async () => {
      const id = `lun-${index}`;
      // btrfs and xfs have a least size.
      const bytes = 320 * mib;
      const path = await (on === 'zvol' ? createZvol : createBackingFile)(guest, id, bytes);
      const { secrets, ...auth } = { secrets: undefined, ...authentications[authentication] };
      const target = { iqn: `iqn.2026-01.org.lab:${id}`, portals: ways[way].listens, luns: { [lun]: path }, ...auth };
      await createIscsiTarget(guest, target);
      const context = { node_attach_driver: 'iscsi', iqn: target.iqn, lun: String(lun), ...ways[way].told };
      const grow = { toBytes: 2 * bytes, grow: () => growBacking(guest, path, 2 * bytes) };
      await lifecycle(guest, server, { id, context, secrets, access, ...(on === 'zvol' && { grow }) });
      await removeIscsiTarget(guest, target);
      await removeBacking(guest, path);
    });
  }
});
