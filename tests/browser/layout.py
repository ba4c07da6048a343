"""Faults of a page that its layout shows: text that is cut off, that lies on other text, or that leaves the page."""

from playwright.sync_api import Page

FAULTS = """
() => {
  const faults = [];
  const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  if (wide > 0) faults.push(`the page is ${wide} px too wide`);
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const lines = [];
  const scrolls = (style) => /auto|scroll/.test(style.overflowX + style.overflowY);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const words = node.textContent.trim();
    const element = node.parentElement;
    const unseen = "option, title, noscript, script, style, [hidden], .js-plotly-plot";
    if (!words || element.closest(`${unseen}, details:not([open]) > :not(summary)`)) continue;
    if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    const rotated = element.closest("text")?.getAttribute("transform")?.includes("rotate");
    const range = document.createRange();
    range.selectNodeContents(node);
    const drawn = element.closest("text");
    for (const rect of drawn ? [drawn.getBoundingClientRect()] : range.getClientRects()) {
      if (rect.width < 2 || rect.height < 2) continue;
      let seen = { left: rect.left, right: rect.right, top: rect.top, bottom: rect.bottom };
      let free = true;
      for (let at = element; at && at !== document.body; at = at.parentElement) {
        const style = getComputedStyle(at);
        if (style.position === "fixed") break;
        if (style.overflowX === "visible" && style.overflowY === "visible") continue;
        const box = at.getBoundingClientRect();
        const out = Math.max(box.left - rect.left, rect.right - box.right);
        if (scrolls(style)) {
          free = false;
          seen = {
            left: Math.max(seen.left, box.left), right: Math.min(seen.right, box.right),
            top: Math.max(seen.top, box.top), bottom: Math.min(seen.bottom, box.bottom),
          };
        } else if (free && out > 2 && style.textOverflow !== "ellipsis" && at.tagName !== "svg") {
          faults.push(`"${words.slice(0, 30)}" is cut by ${Math.round(out)} px in ${at.tagName}`);
        } else if (free && out > 2 && at.tagName === "svg") {
          faults.push(`"${words.slice(0, 30)}" leaves its drawing by ${Math.round(out)} px`);
        }
      }
      const beyond = rect.left < -1 || rect.right > innerWidth + 1;
      if (free && beyond) faults.push(`"${words.slice(0, 30)}" leaves the page`);
      if (!rotated && seen.right - seen.left > 2 && seen.bottom - seen.top > 2) lines.push({ ...seen, words, element });
    }
  }
  lines.sort((a, b) => a.top - b.top);
  lines.forEach((one, i) => {
    for (let j = i + 1; j < lines.length && lines[j].top < one.bottom; j++) {
      const other = lines[j];
      const across = Math.min(one.right, other.right) - Math.max(one.left, other.left);
      const down = Math.min(one.bottom, other.bottom) - other.top;
      const least = Math.min(one.bottom - one.top, other.bottom - other.top);
      if (across > 3 && down > 0.35 * least && one.element !== other.element) {
        faults.push(`"${one.words.slice(0, 30)}" lies on "${other.words.slice(0, 30)}"`);
      }
    }
  });
  return [...new Set(faults)];
}
"""


def faults(page: Page) -> list[str]:
    """Return what is wrong with the text of a page, in words."""
    found: list[str] = page.evaluate(FAULTS)
    return found
