// The lecture's database of students: selection by SQL beside the mixture of attention.

import { ask } from "../shell.js";
import { button, choice, dataTable, group, html, note, slider, textField, toggle } from "./controls.js";
import * as field from "./fields.js";
import { STUDENTS } from "./measures.js";
import { softRetrieval } from "./soft.js";

const SOURCES = ["the lecture's similarities", "my query"];
const SQL = "SELECT name, research, skills FROM students WHERE field = 'CS' AND gpa > 3.5";

const fields = {
  sql: field.text(SQL, 1000),
  students: field.numbers([STUDENTS], 0, 1),
  studentsBy: field.oneOf(SOURCES),
  cs: field.flag(true),
  gpa: field.number(3.5, 0, 4),
  strictness: field.number(5, 0, 30, { step: 0.5 }),
  studentTemperature: field.number(0.1, 0, 3),
};

// Half for the field, half for a grade above the requested one; strictness makes that half steeper.
function similarity(student, { cs, gpa, strictness }) {
  const grade = 1 / (1 + Math.exp(-strictness * (student.gpa - gpa)));
  return 0.5 * Number((student.field === "CS") === cs) + 0.5 * grade;
}

function sqlPart(state, remember) {
  const result = html("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Table, scrolls", "aria-live": "polite" });
  let last = 0; // number of the last request: earlier answers may come after it
  async function run() {
    const request = ++last;
    try {
      const { columns, rows } = await ask("/api/lab/sql", { body: { sql: state.sql } });
      if (request !== last) return;
      const cells = rows.map((row) => row.map((value) => (value === null ? "NULL" : String(value))));
      result.replaceChildren(dataTable(`Complete rows that SQL returns: ${rows.length}`, columns, cells));
    } catch (error) {
      if (request === last) result.replaceChildren(html("p", { class: "alarm" }, error.message));
    }
  }
  const text = textField("SQL, over students (name, field, gpa, research, skills)", state.sql, 3, (sql) => {
    state.sql = sql;
    remember();
  });
  run();
  return group("A hard lookup: SQL", text, button("Run", run), result);
}

function open(state, remember) {
  const shown = softRetrieval("Students: similarity and weight");
  const sliders = html("div", { class: "lab" });
  const own = group(
    "My query",
    toggle("studies CS (else another field)", state.cs, (cs) => set({ cs })),
    slider("grade above", state.gpa, fields.gpa, (gpa) => set({ gpa })).element,
    slider("strictness", state.strictness, fields.strictness, (strictness) => set({ strictness })).element,
  );
  let known = [];

  function draw() {
    const isOwn = state.studentsBy === SOURCES[1];
    [sliders.hidden, own.hidden] = [isOwn, !isOwn];
    if (!known.length) return;
    const items = known.map(({ name, field: of, gpa, research, skills }) => ({
      name,
      key: `${name}, ${of}, ${gpa}`,
      value: `Research: ${research}, Skills: ${skills}`,
    }));
    const found = isOwn ? known.map((student) => similarity(student, state)) : state.students[0];
    shown.draw(items, found, state.studentTemperature);
  }

  function set(change) {
    Object.assign(state, change);
    remember();
    draw();
  }

  ask("/api/lab/students").then(
    ({ students }) => {
      known = students;
      const change = (i) => (number) => set({ students: [state.students[0].with(i, number)] });
      sliders.append(
        group(
          "Similarity of each key",
          ...known.map(({ name }, i) => slider(name, state.students[0][i], fields.students, change(i)).element),
        ),
      );
      draw();
    },
    (error) => shown.element.append(note(error.message)),
  );
  const source = choice("Similarities", SOURCES, state.studentsBy, (studentsBy) => set({ studentsBy }));
  const temperature = slider("temperature", state.studentTemperature, fields.studentTemperature, (studentTemperature) =>
    set({ studentTemperature }),
  );
  draw();
  const controls = html("div", {}, sqlPart(state, remember), source, sliders, own, temperature.element);
  return html("div", { class: "work" }, controls, shown.element);
}

export const students = { fields, open };
