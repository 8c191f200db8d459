/** Runs in a page: the texts in it whose contrast is below 4.5:1 (WCAG 2.1, success criterion 1.4.3), with their contrast. */
(() => {
  const parse = (colour) => (colour.match(/[\d.]+/g) ?? []).map(Number);

  function luminance([red, green, blue]) {
    const [r, g, b] = [red, green, blue].map((one) => {
      const share = one / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }

  function groundOf(element) {
    for (let one = element; one; one = one.parentElement) {
      const ground = parse(getComputedStyle(one).backgroundColor);
      if (ground[3] !== 0) return ground;
    }
    return [255, 255, 255];
  }

  function contrastOf(element) {
    const { color, opacity } = getComputedStyle(element);
    const ground = groundOf(element);
    const text = parse(color).map((one, index) => one * Number(opacity) + ground[index] * (1 - Number(opacity)));
    const [bright, dark] = [luminance(text), luminance(ground)].sort((a, b) => b - a);
    return (bright + 0.05) / (dark + 0.05);
  }

  const poor = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const { parentElement, textContent } = walker.currentNode;
    if (textContent.trim() === '' || parentElement.closest('script, noscript, [hidden]')) continue;
    const contrast = contrastOf(parentElement);
    if (contrast < 4.5) poor.push(`${contrast.toFixed(2)} ${textContent.trim().slice(0, 40)}`);
  }
  return poor;
})();
