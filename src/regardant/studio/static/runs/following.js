// The events of runs, polled while training writes them.

import { ask } from "../shell.js";

// All events of a run so far; `more` fetches newer events and returns whether there were any.
export class Following {
  constructor(run) {
    Object.assign(this, { run, events: [], after: 0, file: "" });
  }

  async more() {
    const { run, after, file } = this;
    const answer = await ask("/api/events", { query: { run, after, file } });
    if (answer.anew) this.events = [];
    this.events.push(...answer.events);
    Object.assign(this, { after: answer.after, file: answer.file });
    return answer.anew || answer.events.length > 0;
  }

  named(name) {
    return this.events.filter((event) => event.event === name);
  }
}
