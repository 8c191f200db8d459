/** Counts the commands that a controller runs on its storage, and kills it after one of them. */
import type { Guest } from '../guest.ts';

/** A connection of the controller that is counted runs everything by it: `cli: { sudoEnabled: true, paths: { sudo: … } }`. */
export const countedSudo = '/usr/local/sbin/counted';

const folder = '/run/counted';

/**
 * Stands where sudo would: `counted -n zfs create …`. After the command whose turn it is, the controller is killed, and nothing more is run.
 * Commands that only read are not counted: to be killed after one is the same as after the command before it.
 */
const script = `#!/bin/bash
shift
"$@"
code=$?
case $2 in get | list | version) exit $code ;; esac
exec 9>${folder}/lock
flock 9
number=$(($(cat ${folder}/count) + 1))
echo $number >${folder}/count
printf '%s ' "$number" "$@" | tr '\\n' ' ' >>${folder}/log; echo >>${folder}/log
exec 9>&-
if [ $number = "$(cat ${folder}/kill)" ]; then
  touch ${folder}/killed
  kill -9 "$(cat ${folder}/pid)"
  exec sleep 1000
fi
exit $code
`;

export async function installCounter(guest: Guest): Promise<void> {
  await guest.run(`cat >${countedSudo} && chmod +x ${countedSudo}`, { input: script });
}

/** Begins to count anew, for the process with this id. `killAfter`: 0 for never. */
export async function count(guest: Guest, pid: number, killAfter: number): Promise<void> {
  await guest.run(
    `mkdir -p ${folder}; cd ${folder}; rm -f killed log; echo 0 >count; echo ${killAfter} >kill; echo ${pid} >pid`,
  );
}

/** Whether it came so far, and what was run. Waits until what the dead controller had started is gone. */
export async function counted(guest: Guest): Promise<{ readonly killed: boolean; readonly commands: string }> {
  const said = await guest.run(`cd ${folder}
    if [ -e killed ]; then
      for _ in {1..200}; do pgrep -f '^(/bin/bash )?${countedSudo}|^sleep 1000' >/dev/null || break; sleep 0.1; done
      echo killed; fi
    cat log 2>/dev/null || true`);
  return { killed: said.startsWith('killed\n'), commands: said.replace(/^killed\n/, '') };
}
