/** Lets the middle of a copy be a place to stop at, and tells how much has been sent. */
import type { Guest } from '../guest.ts';

/** A connection whose copies are to stop has this as its zfs: `cli: { paths: { zfs: … } }`. */
export const gatedZfs = '/usr/local/sbin/gated-zfs';

const folder = '/run/gated';

/** While the gate is closed, `receive` takes so many bytes and then waits. */
export const gateBytes = 64 * 2 ** 20;

const script = `#!/bin/bash
case $1 in
  send) echo "$*" >>${folder}/sends ;;
  receive)
    flow() {
      dd bs=1M count=${gateBytes / 2 ** 20} iflag=fullblock 2>>${folder}/bytes
      if [ -e ${folder}/closed ]; then touch ${folder}/waiting; while [ -e ${folder}/closed ]; do sleep 0.05; done; fi
      dd bs=1M 2>>${folder}/bytes
    }
    pipe=$(mktemp -u ${folder}/pipe.XXXXXX)
    mkfifo "$pipe"
    exec 3<&0
    flow <&3 >"$pipe" 3<&- &
    exec 3<&-
    /sbin/zfs "$@" <"$pipe"
    code=$?
    kill $! 2>/dev/null
    rm "$pipe"
    exit $code ;;
esac
exec /sbin/zfs "$@"
`;

export async function installGate(guest: Guest): Promise<void> {
  await guest.run(`mkdir -p ${folder}; cat >${gatedZfs} && chmod +x ${gatedZfs}`, { input: script });
}

/** Forgets what was sent. */
export async function beginGate(guest: Guest): Promise<void> {
  await guest.run(`rm -f ${folder}/*`);
}

export async function closeGate(guest: Guest): Promise<void> {
  await guest.run(`touch ${folder}/closed`);
}

export async function openGate(guest: Guest): Promise<void> {
  await guest.run(`rm -f ${folder}/closed`);
}

/** Resolves when a copy waits at the gate. */
export async function copyWaits(guest: Guest): Promise<void> {
  await guest.run(`until [ -e ${folder}/waiting ]; do sleep 0.05; done; rm ${folder}/waiting`, { timeoutMs: 180_000 });
}

/** Resolves when nobody sends or receives any more. */
export async function copyIsOver(guest: Guest): Promise<void> {
  await guest.run(`while pgrep -f '[z]fs (send|receive) ' >/dev/null; do sleep 0.05; done`, { timeoutMs: 60_000 });
}

/** The arguments of each send since the beginning, and the bytes that came out of all of them. */
export async function sendings(guest: Guest): Promise<{ readonly sends: readonly string[]; readonly bytes: number }> {
  const text = await guest.run(`cd ${folder}; cat sends; grep -o '^[0-9]* bytes' bytes | sed 's/ .*/ taken/'`);
  const lines = text.split('\n').filter(Boolean);
  const bytes = lines.filter((line) => line.endsWith(' taken')).map((line) => Number.parseInt(line, 10));
  return { sends: lines.filter((line) => line.startsWith('send')), bytes: bytes.reduce((sum, one) => sum + one, 0) };
}
