/** `npm start [-- argument…]`: the program in the foreground, serving. */
import { becomeProgram } from './lib/become-program.ts';

await becomeProgram(['serve', ...process.argv.slice(2)]);
