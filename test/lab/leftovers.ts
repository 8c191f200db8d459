import assert from 'node:assert/strict';
import { eventually } from '../integration/server-under-test.ts';
import type { Guest } from './guest.ts';
import { mountRoot } from './node-volume.ts';
import type { Switchboard } from './switchboard.ts';

/** One line for everything that a node must not keep once no volume is staged. */
async function leftovers(guest: Guest, server: Switchboard | undefined): Promise<string[]> {
  const children =
    server === undefined ? '' : `pgrep -a -P ${server.pid} | grep -v switchboard-starter | sed 's/^/child /'`;
  const listing = await guest.run(`
    awk '$5 ~ "^${mountRoot}" { print "mount", $5 }' /proc/self/mountinfo
    awk '/cifs|nfs/ && $9 != "nfsd" && $9 != "rpc_pipefs" { print "share", $5 }' /proc/self/mountinfo | grep ' / ' || true
    find ${mountRoot} -mindepth 2 2>/dev/null | sed 's/^/path /'
    cat /sys/class/iscsi_session/*/targetname 2>/dev/null | sed 's/^/session /'
    find /etc/iscsi/nodes /var/lib/iscsi/nodes -mindepth 1 2>/dev/null | sed 's/^/iscsi record /'
    cat /sys/class/nvme/*/subsysnqn 2>/dev/null | sed 's/^/nvme /'
    ls /sys/block | grep '^sd' | sed 's/^/disk /'
    cat /sys/block/loop*/loop/backing_file 2>/dev/null | sed 's/^/read-only /'
    ls -d /dev/.switchboard-* 2>/dev/null | sed 's/^/name /'
    find /var/lib/switchboard-*/ -path '*staged*' -type f 2>/dev/null | sed 's/^/record /'
    ${children}
    true`);
  return listing.split('\n').filter(Boolean);
}

/** Fails unless nothing is left of any volume. What a killed process had started may take a moment to go. */
export async function assertNothingLeft(guest: Guest, server?: Switchboard): Promise<void> {
  await eventually(async () => assert.deepEqual(await leftovers(guest, server), []));
}
