import * as v from 'valibot';

/** A user's or group's name or number, as text. */
export const account = v.pipe(
  v.union([v.pipe(v.number(), v.integer(), v.minValue(0)), v.string()], 'a name or a number'),
  v.transform(String),
);
