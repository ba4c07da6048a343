// What a page shows, as a flat dictionary of strings in the address, so that the address is a permanent link to it.

// What the address says, over what the page would show without it; names that the page does not know are left out.
export function readState(defaults) {
  const given = new URLSearchParams(location.hash.slice(1));
  const known = Object.keys(defaults).filter((name) => given.has(name));
  return { ...defaults, ...Object.fromEntries(known.map((name) => [name, given.get(name)])) };
}

// Null and "" are not written. The page is not loaded anew, and "back" leaves it.
export function writeState(state) {
  const told = Object.entries(state).filter(([, value]) => value !== null && value !== "");
  history.replaceState(null, "", `#${new URLSearchParams(told.map(([name, value]) => [name, String(value)]))}`);
}

// A number of what the address says, which may be anybody's.
export const natural = (given) => (/^\d+$/.test(given) ? Number(given) : 0);

addEventListener("hashchange", () => location.reload()); // somebody has written another address
