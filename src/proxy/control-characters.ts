/** True for text with a control character: ids and names never have one, and tools treat them in surprising ways. */
export function hasControlCharacters(text: string): boolean {
  return /\p{Cc}/u.test(text);
}
