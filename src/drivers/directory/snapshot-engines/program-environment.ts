/** The environment of a program that keeps a repository: what this process was given for it, and above that what is configured. */

/** Variables of repositories and their storages, and of what every network program reads. */
const passedOn =
  /^(RESTIC_|KOPIA_|RCLONE_|AWS_|AZURE_|B2_|GOOGLE_|OS_|ST_|SWIFT_|HTTPS?_PROXY$|NO_PROXY$|https?_proxy$|no_proxy$|SSL_CERT_|HOME$|TMPDIR$|XDG_CACHE_HOME$|SSH_AUTH_SOCK$)/;

export function programEnvironment(
  own: Readonly<Record<string, string | undefined>>,
  configured: Readonly<Record<string, string>> | undefined,
): Readonly<Record<string, string>> {
  const passed = Object.entries(own).filter(([name, value]) => value !== undefined && passedOn.test(name));
  return { ...(Object.fromEntries(passed) as Record<string, string>), ...configured };
}

/** What these variables hold may be a secret, or a path that helps to understand an error. */
const harmless =
  /^(HOME|TMPDIR|XDG_CACHE_HOME|NO_PROXY|no_proxy|SSH_AUTH_SOCK)$|_(FILE|DIR|DIRECTORY|PATH|COMMAND|REGION|HOST|FPS)$/;

/** A text of the program without the secrets of its environment. */
export function withoutSecrets(text: string, env: Readonly<Record<string, string>>): string {
  let clean = text.replace(/(\w+:\/\/[^\s/:@]*):[^\s/@]+@/g, '$1:***@');
  for (const [name, value] of Object.entries(env)) {
    if (harmless.test(name) || value.length < 4) continue;
    // The place of a repository may be told, but for what was hidden in it above.
    if (name.endsWith('_REPOSITORY')) continue;
    clean = clean.replaceAll(value, '***');
  }
  return clean;
}
