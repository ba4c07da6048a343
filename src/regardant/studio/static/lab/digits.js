// The notation of true values, and the values that agree with them. The rules are those of `regardant verify`:
//   0.227738   within half a unit of the last digit      1.5±0.2   within 0.2
//   <1e-12     smaller than that      >0.1   larger      sat       this word      a b; c d   a table

const NUMBER = /^[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?$/;
const HALF_A_UNIT = 0.505; // the true value was itself rounded, so a value may lie right on the edge

// Rows of a value: a number, a word, a list of them or a list of lists.
export function rowsOf(value) {
  if (typeof value === "string") return [value.split(" ")];
  if (!Array.isArray(value)) return [[value]];
  return value.some(Array.isArray) ? value : [value];
}

const trueRows = (text) => text.split(";").map((row) => row.trim().split(/\s+/));
const isBound = (text) => /^[<>]/.test(text) && NUMBER.test(text.slice(1));
const centreOf = (text) => text.split("±")[0];

export function agrees(text, value) {
  const [rows, found] = [trueRows(text), rowsOf(value)];
  return (
    rows.length === found.length &&
    rows.every((row, i) => row.length === found[i].length && row.every((item, j) => itemAgrees(item, found[i][j])))
  );
}

function itemAgrees(item, value) {
  if (isBound(item) && typeof value === "number") {
    const bound = Number(item.slice(1));
    return item[0] === "<" ? Math.abs(value) < bound : Math.abs(value) > bound;
  }
  const [centre, spread] = item.split("±");
  if (typeof value === "string" || !NUMBER.test(centre)) return item === String(value);
  return Math.abs(value - Number(centre)) <= (spread ? Number(spread) : HALF_A_UNIT * unitOf(centre));
}

// The unit of the last digit.
function unitOf(text) {
  const [mantissa, exponent] = text.split("e");
  return 10 ** (Number(exponent ?? 0) - (mantissa.split(".")[1] ?? "").length);
}

// A value with as many digits as the true value has.
export function shown(text, value) {
  const rows = trueRows(text);
  return rowsOf(value)
    .map((row, i) => row.map((item, j) => shownItem(rows[i]?.[j] ?? "", item)).join(" "))
    .join("; ");
}

function shownItem(text, value) {
  if (typeof value === "string") return value;
  const centre = centreOf(text);
  if (!NUMBER.test(centre)) return value === 0 ? "0" : Number(value.toPrecision(4)).toString();
  const [mantissa, exponent] = centre.split("e");
  const digits = (mantissa.split(".")[1] ?? "").length;
  const written = exponent === undefined ? value.toFixed(digits) : value.toExponential(digits).replace("e+", "e");
  return /^-0\.?0*$/.test(written) ? written.slice(1) : written;
}
