/** `npm run -s switchboard -- argument…`: the program as `npm start` runs it, with any arguments. */
import { becomeProgram } from './lib/become-program.ts';

await becomeProgram(process.argv.slice(2));
