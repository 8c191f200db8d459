import { about, type Finding } from './finding.ts';
import { imageAge } from './image-age.ts';
import { type HostFile, type Inspection, readHostFile } from './inspection.ts';

const finding = about('identity');

const name = 'iSCSI initiator';
const path = '/etc/iscsi/initiatorname.iscsi';
const renew = `write InitiatorName=<output of iscsi-iname> into ${path} of this host and restart iscsid`;

/** `needed`: something that is configured has to know it. */
export async function checkInitiatorName(
  inspection: Pick<Inspection, 'files' | 'hostRoot'>,
  needed: boolean,
): Promise<readonly Finding[]> {
  const file = await readHostFile(inspection, path);
  if (file === undefined) {
    if (!needed) return [finding('note', name, `no ${path}; for iSCSI disks`)];
    return [
      finding('error', name, `there is no ${path}`, 'install open-iscsi on the host; its service makes the file'),
    ];
  }
  const names = [...file.text.matchAll(/^[ \t]*InitiatorName[ \t]*=[ \t]*(.*)$/gm)].map(([, one = '']) => one.trim());
  return [judge(file, names, needed, await imageAge(inspection, file))];
}

function judge(file: HostFile, names: readonly string[], needed: boolean, age: string | undefined): Finding {
  const bad = needed ? 'error' : 'warning';
  const [iqn] = names;
  if (iqn === undefined) {
    const generated = /^GenerateName=yes/m.test(file.text);
    const why = generated ? 'not made yet: the service iscsid makes it when it first starts' : 'has no InitiatorName=';
    return finding(bad, name, `${file.path}: ${why}`, generated ? 'start iscsid once' : renew);
  }
  if (names.length > 1) return finding(bad, name, `${file.path} has ${names.length} names`, 'leave one of them');
  if (!isInitiatorName(iqn))
    return finding(bad, name, `${file.path}: "${iqn}" is not an iqn., eui. or naa. name`, renew);
  if (isPlaceholder(iqn)) return finding(bad, name, `${iqn} is an example’s name, which others use too`, renew);
  if (file.hides) {
    const detail = `${iqn} is of this container’s image, and every container of that image has it; the host has another in ${file.hides.path}`;
    return finding(
      'warning',
      name,
      detail,
      `mount the host’s /etc/iscsi at /etc/iscsi, or leave ${path} out of the image`,
    );
  }
  if (age !== undefined) return finding('warning', name, `${iqn} ${age}`, renew);
  return finding('ok', name, iqn);
}

/** RFC 3720, 3.2.6.3, and RFC 3980 for `naa.`. */
function isInitiatorName(text: string): boolean {
  if (text.length > 223) return false;
  return /^(iqn\.\d{4}-(0[1-9]|1[0-2])\.[a-z0-9][a-z0-9.-]*(:\S*)?|eui\.[0-9a-f]{16}|naa\.([0-9a-f]{16}|[0-9a-f]{32}))$/i.test(
    text,
  );
}

function isPlaceholder(text: string): boolean {
  return (
    /\b(example|localhost|changeme|your-?\w+|initiator-?name)\b/i.test(text) ||
    /:(01:)?$/.test(text) ||
    /:0+$/.test(text)
  );
}
