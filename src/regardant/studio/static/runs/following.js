// The events of runs, polled while training writes them.

import { ask } from "../shell.js";

// All events of a run so far; `more` fetches newer events and returns whether there were any.
export class Following {
  constructor(run) {
    Object.assign(this, { run, events: [], after: 0, file: "" });
  }

  async more() {
    const { run, after, file } = this;
    const told = await ask("/api/events", { query: { run, after, file } });
    if (told.anew) this.events = [];
    this.events.push(...told.events);
    Object.assign(this, { after: told.after, file: told.file });
    return told.anew || told.events.length > 0;
  }

  named(name) {
    return this.events.filter((event) => event.event === name);
  }
}
