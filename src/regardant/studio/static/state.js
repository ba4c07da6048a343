// The state of a page as a flat dictionary of strings in the URL hash, so that the URL is a permanent link.

// The defaults, overridden by the URL; unknown names are ignored.
export function readState(defaults) {
  const given = new URLSearchParams(location.hash.slice(1));
  const known = Object.keys(defaults).filter((name) => given.has(name));
  return { ...defaults, ...Object.fromEntries(known.map((name) => [name, given.get(name)])) };
}

// Null and "" are not written. The page is not reloaded, and "back" leaves it.
export function writeState(state) {
  const entries = Object.entries(state).filter(([, value]) => value !== null && value !== "");
  history.replaceState(null, "", `#${new URLSearchParams(entries.map(([name, value]) => [name, String(value)]))}`);
}

// A number from the URL, which anybody may write: 0 if it is not a natural number.
export const natural = (given) => (/^\d+$/.test(given) ? Number(given) : 0);

addEventListener("hashchange", () => location.reload()); // the URL was edited
