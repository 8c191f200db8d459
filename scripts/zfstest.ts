/** `npm run test:zfs [-- part-of-a-name…]`: volumes on real ZFS over real SSH, in guests. It takes what `npm run test:lab` takes. */
import { runLab } from './test/lab.ts';

process.exitCode = (await runLab((name) => name.startsWith('zfs-'), process.argv.slice(2))) ? 0 : 1;
