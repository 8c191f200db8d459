const form = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** UUIDs that boards come with when their maker gave them none. Two such machines would be one host to a subsystem, and could share reservations. */
const common: readonly RegExp[] = [
  /^([0-9a-f])\1{7}(-\1{4}){3}-\1{12}$/,
  /^03000200-0400-0500-0006-000700080009$/,
  /^00020003-0004-0005-0006-000700080009$/,
  /^12345678-1234-5678-90ab-cddeefaabbcc$/,
];

/** A machine's UUID (DMI product_uuid) in lower case. Undefined: it is none, or one that many machines have. */
export function ownUuid(text: string): string | undefined {
  const uuid = text.trim().toLowerCase();
  return form.test(uuid) && !common.some((one) => one.test(uuid)) ? uuid : undefined;
}
