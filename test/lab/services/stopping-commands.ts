/** Holds what a controller does on its storage after one of its commands, so that something can happen to the storage just there. */
import type { Guest } from '../guest.ts';

const folder = '/run/stopping';

/** A connection with this name runs everything by it: `cli: { sudoEnabled: true, paths: { sudo: … } }`. */
export const stoppingSudo = (name: string) => `/usr/local/sbin/stopping-${name}`;

/** Stands where sudo would: `stopping-nfs -n zfs create …`. Commands that only read are not counted, and a restart ends the counting. */
const script = `#!/bin/bash
shift
at=${folder}/\${0##*/stopping-}
[ -e "$at/turn" ] || exec "$@"
"$@"
code=$?
case $2 in get | list | version) exit $code ;; -c) [[ $3 == *mkdir* ]] || exit $code ;; esac
exec 9>"$at/lock"
flock 9
number=$(($(cat "$at/count") + 1))
echo $number >"$at/count"
echo "$number: $*" >>"$at/log"
exec 9>&-
if [ $number = "$(cat "$at/turn")" ]; then
  touch "$at/stopped"
  exec sleep 1000
fi
exit $code
`;

export async function installStops(guest: Guest, names: readonly string[]): Promise<void> {
  for (const name of names) {
    const path = stoppingSudo(name);
    await guest.run(`cat >${path} && chmod +x ${path}`, { input: script });
  }
}

/** From now on, each connection stops after so many commands. */
export async function stopAfter(guest: Guest, names: readonly string[], commands: number): Promise<void> {
  const lines = names.map(
    (name) => `mkdir -p ${folder}/${name}; cd ${folder}/${name}; echo 0 >count; echo ${commands} >turn`,
  );
  await guest.run(lines.join('\n'));
}

/** Which of them have stopped, and what each has run. */
export async function stopped(
  guest: Guest,
): Promise<{ readonly names: ReadonlySet<string>; readonly commands: string }> {
  const text = await guest.run(`cd ${folder}; ls */stopped 2>/dev/null; echo; cat */log 2>/dev/null; true`);
  const end = text.indexOf('\n\n');
  const [names, commands] = text.startsWith('\n') ? ['', text] : [text.slice(0, end), text.slice(end)];
  return { names: new Set(names.split('\n').map((line) => line.replace('/stopped', ''))), commands };
}
