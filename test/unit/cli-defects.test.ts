import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { surviveDefects } from '../../src/cli/defects.ts';
import { createLogger } from '../../src/core/logger.ts';

describe('an error that nobody caught', () => {
  function surviving() {
    const lines: { level: string; error?: string }[] = [];
    const log = createLogger({ level: 'info', format: 'json', write: (line) => lines.push(JSON.parse(line)) });
    return { lines, defects: surviveDefects(log) };
  }

  test('is logged in one line, and the process goes on', () => {
    const before = process.listeners('uncaughtException');
    const { lines, defects } = surviving();
    process.emit('uncaughtException', new Error('first\nline'));
    process.emit('unhandledRejection', 'only text', Promise.resolve());
    defects.stop();
    assert.deepEqual(
      lines.map(({ level, error }) => [level, error]),
      [
        ['error', 'first line'],
        ['error', 'only text'],
      ],
    );
    assert.deepEqual(process.listeners('uncaughtException'), before);
  });

  test('a warning of Node.js is a line of the log', () => {
    const { lines, defects } = surviving();
    process.emit('warning', new Error('do not do that'));
    defects.stop();
    assert.deepEqual(
      lines.map(({ level }) => level),
      ['warn'],
    );
  });

  test('in floods ends the process', async () => {
    const { defects } = surviving();
    for (let count = 0; count < 100; count++) process.emit('uncaughtException', new Error(`number ${count}`));
    defects.stop();
    await assert.rejects(defects.fatal, /100 uncaught errors within a minute, the last: number 99/);
  });
});
