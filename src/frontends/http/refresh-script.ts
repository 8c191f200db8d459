/**
 * Keeps the page up to date where scripts run: it looks again every few seconds, changes nothing while text is selected, and says so when nobody
 * answers. Without scripts the browser loads the page anew by itself.
 */

/** Seconds between two looks. */
export const refreshSeconds = 5;

export const refreshScript = `
const offline = document.querySelector('.offline');
async function look() {
  try {
    if (document.hidden || !getSelection().isCollapsed) return;
    const response = await fetch(location.pathname, { cache: 'no-store', signal: AbortSignal.timeout(10000) });
    if (!response.ok) throw new Error(response.status);
    const page = new DOMParser().parseFromString(await response.text(), 'text/html');
    const found = page.querySelector('main');
    if (!found) throw new Error('another page');
    if (!getSelection().isCollapsed) return;
    document.querySelector('main').replaceWith(found);
    document.querySelector('link[rel=icon]').replaceWith(page.querySelector('link[rel=icon]'));
    document.title = page.title;
    offline.hidden = true;
  } catch {
    offline.hidden = false;
    document.title = 'no answer | Switchboard';
  } finally {
    setTimeout(look, ${refreshSeconds * 1000});
  }
}
setTimeout(look, ${refreshSeconds * 1000});
`;
