/** The fields marked `csi_secret`: what must never be logged. */
import protobuf from 'protobufjs';

/** secrets.js: message name → names of its secret fields. */
export function secretsModule(api: protobuf.Namespace): string {
  const messages = api.nestedArray.filter((one) => one instanceof protobuf.Type);
  const lines = messages.flatMap((message) => {
    refuseInnerSecrets(message);
    const fields = secretsOf(message);
    return fields.length === 0 ? [] : [`  ${message.name}: [${fields.map((name) => `'${name}'`).join(', ')}],\n`];
  });
  return `\nexport const secretFields = {\n${lines.join('')}};\n`;
}

/** secrets.d.ts. */
export function secretsTypes(): string {
  return `
/** Message name → names of its fields marked \`csi_secret\`: what must never be logged. Messages without secrets are not listed. */
export const secretFields: { readonly [messageName: string]: readonly string[] | undefined };
`;
}

function secretsOf(message: protobuf.Type): string[] {
  return message.fieldsArray.filter((field) => field.options?.['(csi_secret)'] === true).map((field) => field.name);
}

/** Redaction looks at the fields of requests and responses only, so a secret further in would be shown. */
function refuseInnerSecrets(outer: protobuf.Type): void {
  for (const field of outer.fieldsArray) {
    const inner = field.resolve().resolvedType;
    if (inner instanceof protobuf.Type && secretsOf(inner).length > 0) {
      throw new Error(`${field.fullName}: a secret inside another message is not foreseen`);
    }
  }
}
