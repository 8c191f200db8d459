/** Permission bits in configuration files. */
import * as v from 'valibot';

/**
 * A schema for permission modes; its output is the mode as a number for chmod: `dirPermissionsMode: "0777"` gives 0o777.
 *
 * The digits are octal however YAML understood them: quoted (`"0777"`, `"777"`), unquoted (`0777` and `777` are both the decimal number 777 in
 * YAML 1.2) or in YAML's own octal notation (`0o777`, which the document reader hands over as text).
 */
export function octalMode() {
  const expected = 'a permission mode in octal digits, such as "0755"';
  return v.pipe(
    v.union([v.string(), v.number()], expected),
    v.transform(String),
    v.regex(/^(?:0o)?0?[0-7]{1,4}$/, expected),
    v.transform((digits) => Number.parseInt(digits.replace(/^0o/, ''), 8)),
  );
}
