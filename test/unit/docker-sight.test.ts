import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dockerSight } from '../../src/cli/docker-sight.ts';
import { silentLogger } from '../../src/core/logger.ts';

function sight(settings: { allowUnseenMounts: boolean; restartUnseen: boolean }, ageMs = 60_000) {
  let ends = 0;
  const check = dockerSight(settings, silentLogger, {
    check: async (path) => {
      if (path === '/unseen') throw new Error('not seen');
    },
    ageMs: () => ageMs,
    end: () => ends++,
  });
  return { check, ends: () => ends };
}

const unseen = { message: 'not seen' };

test('a managed plugin ends once for a mount that Docker does not see, and refuses all of them', async () => {
  const { check, ends } = sight({ allowUnseenMounts: false, restartUnseen: true });
  await check('/seen');
  assert.equal(ends(), 0);
  await assert.rejects(check('/unseen'), unseen);
  await assert.rejects(check('/unseen'), unseen);
  assert.equal(ends(), 1);
});

test('one that has just been started only refuses', async () => {
  const { check, ends } = sight({ allowUnseenMounts: false, restartUnseen: true }, 1000);
  await assert.rejects(check('/unseen'), unseen);
  assert.equal(ends(), 0);
});

test('a server that dockerd does not start only refuses', async () => {
  const { check, ends } = sight({ allowUnseenMounts: false, restartUnseen: false });
  await assert.rejects(check('/unseen'), unseen);
  assert.equal(ends(), 0);
});

test('where that is allowed nobody looks', async () => {
  const { check, ends } = sight({ allowUnseenMounts: true, restartUnseen: true });
  await check('/unseen');
  assert.equal(ends(), 0);
});
