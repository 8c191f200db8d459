import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { openLogFile } from '../../src/cli/log-file.ts';

async function folder(t: TestContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'log-file-'));
  t.after(() => rm(path, { recursive: true, force: true }));
  return path;
}

const unexpected = (reason: string) => assert.fail(reason);

test('lines are appended in their order, to what is there', async (t) => {
  const path = join(await folder(t), 'new/log');
  const first = openLogFile({ path, maxBytes: 1000, onFailure: unexpected });
  for (const number of [1, 2, 3]) first.write(`${number}\n`);
  await first.close();
  const second = openLogFile({ path, maxBytes: 1000, onFailure: unexpected });
  second.write('4\n');
  await second.close();
  assert.equal(await readFile(path, 'utf8'), '1\n2\n3\n4\n');
  assert.equal((await stat(path)).mode & 0o777, 0o640);
});

test('a full file becomes the one before, and no more than two are kept', async (t) => {
  const path = join(await folder(t), 'log');
  await writeFile(path, 'x'.repeat(90));
  const file = openLogFile({ path, maxBytes: 100, onFailure: unexpected });
  for (let number = 0; number < 40; number++) {
    file.write(`line ${number}\n`);
    await file.close();
  }
  const [now, before] = await Promise.all([readFile(path, 'utf8'), readFile(`${path}.1`, 'utf8')]);
  assert.ok(now.length <= 100 && before.length <= 100);
  assert.match(before + now, /^(line \d+\n)+line 38\nline 39\n$/);
});

test('a file that cannot be written is told of once, and written again when it can', async (t) => {
  const base = await folder(t);
  const path = join(base, 'log');
  await mkdir(path);
  const reasons: string[] = [];
  const file = openLogFile({ path, maxBytes: 100, onFailure: (reason) => reasons.push(reason) });
  for (const line of ['a\n', 'b\n']) {
    file.write(line);
    await file.close();
  }
  assert.equal(reasons.length, 1);
  assert.match(reasons[0] ?? '', /log.*no regular file/);
  await rm(path, { recursive: true });
  file.write('c\n');
  await file.close();
  assert.equal(await readFile(path, 'utf8'), 'c\n');
});
