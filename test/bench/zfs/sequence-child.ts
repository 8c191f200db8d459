/** Runs sequences of commands over one connection of SSH, each command as a session of its own. Told what to run by its parent process. */
import { readFileSync } from 'node:fs';
import { Client } from 'ssh2';

const [host = '', port = '', keyFile = ''] = process.argv.slice(2);
const client = new Client();

/** The first command of a sequence may say that there is nothing yet. */
async function runAll(commands: readonly string[]): Promise<void> {
  for (const [index, command] of commands.entries()) {
    const { code, said } = await run(command);
    if (code !== 0 && index > 0) throw new Error(`${command}: ${code}: ${said}`);
  }
}

function run(command: string): Promise<{ readonly code: number | null; readonly said: string }> {
  return new Promise((resolve, reject) => {
    client.exec(command, (error, channel) => {
      if (error) return reject(error);
      let said = '';
      let code: number | null = null;
      channel.on('data', (chunk: Buffer) => {
        said += chunk.toString();
      });
      channel.stderr.on('data', (chunk: Buffer) => {
        said += chunk.toString();
      });
      channel.on('exit', (exit: number | null) => {
        code = exit;
      });
      channel.on('close', () => resolve({ code, said }));
    });
  });
}

client.on('ready', () => process.send?.('ready'));
client.on('error', (error) => {
  process.stderr.write(`${error.message}\n`);
  process.exit(1);
});
client.connect({ host, port: Number(port), username: 'root', privateKey: readFileSync(keyFile) });

process.on('message', ({ id, commands }: { readonly id: number; readonly commands: readonly string[] }) => {
  runAll(commands).then(
    () => process.send?.({ id }),
    (error: Error) => process.send?.({ id, error: error.message }),
  );
});
process.on('disconnect', () => process.exit(0));
