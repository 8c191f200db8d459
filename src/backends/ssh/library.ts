/** The SSH library, which takes long to load and which few connections need. */
type Library = typeof import('ssh2');

export async function loadSsh(): Promise<Library> {
  const loaded = (await import('ssh2')) as Library & { readonly default?: Library };
  return loaded.default ?? loaded;
}
