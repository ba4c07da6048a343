// The state that a bench keeps in the URL: each field has a default, bounds, and functions that read and write text.
// Anybody may write the URL, so an invalid value is replaced by the default.

const isNumber = (text) => /^-?\d+(\.\d+)?(e-?\d+)?$/.test(text);

// step: step of its slider; log: the slider is logarithmic.
export function number(start, least, most, { step = 0.01, log = false } = {}) {
  const read = (text) => (isNumber(text) ? Math.min(most, Math.max(least, Number(text))) : start);
  return {
    start,
    least,
    most,
    step,
    log,
    read: step % 1 === 0 ? (text) => Math.round(read(text)) : read,
    write: String,
  };
}

// A matrix of numbers, or a vector as one row.
export function numbers(start, least, most, step = 0.01) {
  const read = (text) => {
    const found = text.split(";").map((row) => row.split(","));
    const fits =
      found.length === start.length && found.every((row, i) => row.length === start[i].length && row.every(isNumber));
    const whole = step % 1 === 0 ? Math.round : (item) => item;
    return (fits ? found : start).map((row) => row.map((item) => whole(Math.min(most, Math.max(least, Number(item))))));
  };
  return { start, least, most, step, read, write: (rows) => rows.map((row) => row.join(",")).join(";") };
}

export const flag = (start) => ({ start, read: (text) => text === "yes", write: (value) => (value ? "yes" : "no") });
export const oneOf = (options, start = options[0]) => ({
  start,
  options,
  read: (text) => (options.includes(text) ? text : start),
  write: String,
});
export const text = (start, most = 4000) => ({ start, read: (given) => given.slice(0, most), write: String });

// readFields returns the state of a URL; writeFields returns the fields of a state that are not at their defaults.
export function readFields(fields, given) {
  const entries = Object.entries(fields);
  return Object.fromEntries(
    entries.map(([name, field]) => [name, given[name] === null ? structuredClone(field.start) : field.read(given[name])]),
  );
}

export function writeFields(fields, state) {
  const entries = Object.entries(fields).map(([name, field]) => [name, field.write(state[name])]);
  return Object.fromEntries(entries.filter(([name, written]) => written !== fields[name].write(fields[name].start)));
}
