/**
 * `npm run test:lab [-- part-of-a-name…]`: what takes a kernel of its own: real servers of NFS, SMB, iSCSI and NVMe-oF, and the program as their
 * client, in guests. Without root it says so and succeeds, except in CI, where what cannot be tested is a failure.
 */
import { runLab } from './test/lab.ts';

const isChosen = (name: string) => !name.startsWith('docker') && !name.startsWith('zfs-');

process.exitCode = (await runLab(isChosen, process.argv.slice(2))) ? 0 : 1;
