/** How `doctor` puts findings together, shows them, and keeps secrets out. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { object, optional, string } from 'valibot';
import { checksWith, examine } from '../../src/cli/doctor/examine.ts';
import { about, type Finding, subjects } from '../../src/cli/doctor/finding.ts';
import { jsonReport, textReport } from '../../src/cli/doctor/report.ts';
import { secretsIn, withoutSecrets } from '../../src/cli/doctor/secrets.ts';
import { secret } from '../../src/config/secret.ts';
import { machine } from './doctor-support.ts';

const program = about('programs');
const esc = '\u001b';

describe('text', () => {
  test('by subject, what is to be done first, in columns, with the totals', () => {
    const findings = [
      about('limits')('ok', 'open files', 'many'),
      program('note', 'nvme', 'not found'),
      program('ok', 'mount', 'there'),
      program('error', 'mount.nfs', 'not found', 'install it'),
    ];
    assert.equal(
      textReport(findings, 80, false),
      `Programs
  error    mount.nfs  not found
                      → install it
  ok       mount      there
  note     nvme       not found

Limits
  ok       open files  many

2 ok, 1 note, 0 warnings, 1 error
`,
    );
  });

  test('lines fit, and no control character comes through', () => {
    const detail = `${'many words '.repeat(30)}\u001b[31m\nend`;
    const text = textReport([program('warning', 'x'.repeat(60), detail, detail)], 60, false);
    for (const line of text.split('\n')) assert.ok(line.length <= 72, line);
    assert.ok(!text.includes(esc));
    assert.ok(textReport([program('ok', 'a', 'b')], 60, true).includes(`${esc}[32mok`));
  });
});

test('JSON has what it is documented to have', () => {
  const findings = [program('error', 'a', 'b', 'c'), program('ok', 'd', 'e')];
  const { ok, counts, findings: shown } = JSON.parse(jsonReport(findings));
  assert.equal(ok, false);
  assert.deepEqual(counts, { ok: 1, note: 0, warning: 0, error: 1 });
  assert.deepEqual(shown, [
    { subject: 'programs', name: 'a', state: 'error', detail: 'b', advice: 'c' },
    { subject: 'programs', name: 'd', state: 'ok', detail: 'e' },
  ]);
});

test('a check that throws is a finding; the others are shown, in their order', async () => {
  const checks = checksWith(async () => [about('identity')('ok', 'node name', 'n')]);
  const found = await examine(machine(), { ...checks, kernel: () => Promise.reject(new Error('odd')) });
  const kernel = found.filter((one) => one.subject === 'kernel');
  assert.deepEqual(kernel, [{ subject: 'kernel', name: 'not all checked', state: 'warning', detail: 'odd' }]);
  const order = [...new Set(found.map((one) => one.subject))];
  assert.deepEqual(
    order,
    subjects.filter((one) => order.includes(one)),
  );
  assert.ok(order.length > 5);
});

describe('secrets', () => {
  const schema = object({
    host: string(),
    password: optional(secret(string())),
    ssh: object({ key: secret(string()) }),
  });

  test('what the schema marks, what it does not know, and every line of it', () => {
    const input = { host: 'nas', password: 'hunter22', pasword: 'hunter33', ssh: { key: 'line one\nline two' } };
    const found = secretsIn(schema, input);
    assert.deepEqual(
      found.toSorted(),
      ['hunter22', 'hunter33', 'line one', 'line one\nline two', 'line two'].toSorted(),
    );
  });

  test('none is left in any finding', () => {
    const secretText = fc
      .string({ minLength: 4, maxLength: 12 })
      .filter((text) => text.trim() === text && !text.includes('*'));
    fc.assert(
      fc.property(fc.array(secretText, { maxLength: 5 }), fc.string(), (secrets, noise) => {
        const said = `${noise} ${secrets.join(' ')} ${noise}`;
        const findings: Finding[] = [program('error', `n ${secrets[0]}`, said, said)];
        const [shown] = withoutSecrets(findings, secrets);
        for (const text of [shown?.name, shown?.detail, shown?.advice]) {
          for (const one of secrets) assert.ok(!text?.includes(one));
        }
      }),
      { numRuns: 200 },
    );
  });

  test('whatever a check says', async () => {
    const checks = checksWith(async () => []);
    const found = await examine(machine({ configured: { secrets: ['hunter22'] } }), {
      ...checks,
      docker: async () => [about('docker')('error', 'x', 'login with hunter22 failed')],
    });
    assert.doesNotMatch(JSON.stringify(found), /hunter22/);
  });
});
