import assert from 'node:assert/strict';
import { test } from 'node:test';
import { httpSettings } from '../../src/cli/http-settings.ts';
import { settingReader } from '../../src/cli/setting-reader.ts';
import { UsageError } from '../../src/cli/usage-error.ts';

const read = (flags: Record<string, string | boolean>, env: Record<string, string> = {}) =>
  httpSettings(settingReader(flags, env));

test('there is no HTTP door unless it is asked for', () => {
  assert.equal(read({}), undefined);
  assert.deepEqual(read({ httpEndpoint: 'tcp://127.0.0.1:9808' }), {
    endpoint: 'tcp://127.0.0.1:9808',
    allowRemote: false,
  });
  assert.deepEqual(read({}, { SWITCHBOARD_HTTP_ENDPOINT: '/run/x.sock', SWITCHBOARD_HTTP_ALLOW_REMOTE: 'true' }), {
    endpoint: '/run/x.sock',
    allowRemote: true,
  });
});

test('allowing others to read where nothing can be read is a mistake', () => {
  assert.throws(() => read({ httpAllowRemote: true }), UsageError);
});
