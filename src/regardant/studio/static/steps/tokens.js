// Display names of tokens: without the mark that begins a word.

const MARK = "▁";

export function readable(tokens) {
  const marked = tokens.some((token) => token.startsWith(MARK));
  return tokens.map((token, i) => {
    if (!token.trim()) return "␣".repeat(token.length);
    if (!marked) return token;
    if (token.startsWith(MARK)) return token.slice(MARK.length) || "␣";
    const inside = /^[\p{L}\p{N}]/u.test(token) && /[\p{L}\p{N}▁]$/u.test(tokens[i - 1] ?? "");
    return inside ? `-${token}` : token;
  });
}
